"""ResNet-18 as torchvision has it (He et al. 2015): 11.2 million parameters with 10 classes.

Input x: float32 [B, 3, H, W], H and W at least 32; output: logits [B, classes]. Initialised as torchvision's:
convolutions normal by fan out, batch norm 1 and 0. Names and order of the parameters are torchvision's, too.

`small_images` is the usual change for CIFAR and the like: a first convolution of 3x3 without stride, and no pooling after
it. H and W are then at least 8.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 10, small_images: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        if small_images:
            self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = self._layer(64, 64, stride=1)
        self.layer2 = self._layer(64, 128, stride=2)
        self.layer3 = self._layer(128, 256, stride=2)
        self.layer4 = self._layer(256, 512, stride=2)
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @staticmethod
    def _layer(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        return nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))  # [B, 64, H / 4, W / 4]; small images: [B, 64, H, W]
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))  # [B, 512, H / 32, W / 32]; small images: an eighth
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def resnet18_small_images() -> ResNet18:
    """For configs/mnist_images.yaml."""
    return ResNet18(small_images=True)
