# CPU:   docker build -t xmodal .
# CUDA:  docker build -t xmodal --build-arg BASE=pytorch/pytorch:2.7.1-cuda12.6-cudnn9-runtime \
#                     --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu126 .
# Run:   docker run --rm -it --gpus all --shm-size 8g -v "$PWD/data:/work/data" xmodal xmodal info
ARG BASE=python:3.11-slim
FROM ${BASE}
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

# OpenCV needs both libraries, and dist_train.sh pkill.
RUN apt-get update && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 procps \
    && rm -rf /var/lib/apt/lists/*
# An image of PyTorch has it already, and this line then does nothing.
RUN pip install --no-cache-dir 'torch>=2.7' 'torchvision>=0.22' --index-url ${TORCH_INDEX}

COPY . /opt/xmodal
RUN pip install --no-cache-dir /opt/xmodal
WORKDIR /work
CMD ["xmodal", "--help"]
