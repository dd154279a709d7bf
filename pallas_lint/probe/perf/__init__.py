"""Uses of predicted costs: findings, block sizes to choose, baselines to keep."""
