"""Which findings are told: suppressions, baselines, and what a finding is known by."""
