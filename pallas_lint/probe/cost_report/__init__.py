"""Reports of predicted costs: findings, tables, charts, and baselines to compare with."""
