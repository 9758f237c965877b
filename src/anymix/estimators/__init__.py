"""The scikit-learn skin and the baselines."""
