"""Training with Stable-Baselines3 algorithms on the vector envs. The only package that imports torch."""

if __name__ == "agents":  # else its modules would be there twice, with classes that differ
    raise ImportError("this package is snake_gym.agents; expected: import snake_gym.agents")
