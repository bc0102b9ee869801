"""Node tests of the onnx package that cannot pass, and why."""

EXCLUDED: dict[str, str] = {}
