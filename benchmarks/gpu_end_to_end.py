"""The table of benchmarks/end_to_end.py on onnxruntime's CUDA provider.

    python benchmarks/gpu_end_to_end.py [network ...]

Everything is as there, with kernels measured on the GPU, beside torch.compile and the other optimizers.
"""

import sys

from end_to_end import main

if __name__ == "__main__":
    tools = "transformers,onnxsim,onnxslim,onnxscript,torch.compile"
    main(["--provider", "cuda", "--batch", "1", "8", "--tools", tools, *sys.argv[1:]])
