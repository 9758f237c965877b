"""The paper in code: numpy and scipy only, imports no other room."""
