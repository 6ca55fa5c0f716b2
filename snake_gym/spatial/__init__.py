"""Spatial snake robots on MuJoCo: model files, grounds and batched simulation. Needs the extra ``spatial``."""
