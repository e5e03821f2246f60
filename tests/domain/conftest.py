"""Property tests judge values, never the clock; and a build that fails fails again."""

from hypothesis import settings

settings.register_profile("tidegate", deadline=None, derandomize=True)
settings.load_profile("tidegate")
