"""Training with Stable-Baselines3 algorithms on the vector envs. The only package that imports torch."""
