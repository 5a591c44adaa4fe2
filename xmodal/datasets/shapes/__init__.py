"""shapes, the embedded world: procedural scenes in the formats of the benchmarks."""

from xmodal.datasets.shapes.build import WorldSpec, build_world

__all__ = ['WorldSpec', 'build_world']
