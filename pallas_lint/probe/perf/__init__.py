"""What the predicted costs of launches come to: findings, block sizes to choose, baselines to keep."""
