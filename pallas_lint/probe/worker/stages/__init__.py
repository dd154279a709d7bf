"""The stages that a launch goes through: grid, interpreters, checks, lowering, compilers."""
