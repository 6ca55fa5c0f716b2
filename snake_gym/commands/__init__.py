"""Commands that show, check, time and prepare environments: one file each, found by ``snake_gym.__main__``."""
