"""Convolutional networks and vision transformers: the structures of torchvision, narrow. Images [B, 3, H, W], logits
[B, CLASSES]; the U-Net gives logits of every pixel [B, CLASSES, H, W].
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 4


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU,
              **norm: float) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs, **norm), *([act()] if act else []))


# ---- ResNet-18 -----------------------------------------------------------------------------------------------------

class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = conv_norm(inputs, outputs, 1, stride, act=None) if stride != 1 else None

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.downsample is not None:
            identity = self.downsample(x)
        y += identity
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._layer(width, width, 1)
        self.layer2 = self._layer(width, 2 * width, 2)
        self.layer3 = self._layer(2 * width, 3 * width, 2)
        self.layer4 = self._layer(3 * width, 4 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(4 * width, CLASSES)

    @staticmethod
    def _layer(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        return nn.Sequential(BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


# ---- MobileNetV3 and EfficientNet ----------------------------------------------------------------------------------

class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeezed: int, act: type, gate: type) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.activation = act()
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.scale_activation = gate()

    def forward(self, x: Tensor) -> Tensor:
        scale = self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))
        return scale * x


class InvertedResidual(nn.Module):
    """Expands, filters depthwise, weighs channels, projects."""

    def __init__(self, inputs: int, expanded: int, outputs: int, kernel: int, stride: int, act: type,
                 excitation: nn.Module | None, **norm: float) -> None:
        super().__init__()
        self.use_res_connect = stride == 1 and inputs == outputs
        layers: list[nn.Module] = []
        if expanded != inputs:
            layers.append(conv_norm(inputs, expanded, 1, act=act, **norm))
        layers.append(conv_norm(expanded, expanded, kernel, stride, expanded, act, **norm))
        layers += [excitation] if excitation is not None else []
        layers.append(conv_norm(expanded, outputs, 1, act=None, **norm))
        self.block = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        if self.use_res_connect:
            y = y + x
        return y


class MobileNetV3Small(nn.Module):
    # inputs, kernel, expanded, outputs, excitation, hardswish, stride; all channels are divided by 4.
    BLOCKS = ((16, 3, 16, 16, True, False, 2), (16, 3, 72, 24, False, False, 2), (24, 3, 88, 24, False, False, 1),
              (24, 5, 96, 40, True, True, 2), (40, 5, 240, 40, True, True, 1), (40, 5, 240, 40, True, True, 1),
              (40, 5, 120, 48, True, True, 1), (48, 5, 144, 48, True, True, 1), (48, 5, 288, 96, True, True, 2),
              (96, 5, 576, 96, True, True, 1), (96, 5, 576, 96, True, True, 1))

    def __init__(self) -> None:
        super().__init__()
        norm = {"eps": 0.001, "momentum": 0.01}
        layers: list[nn.Module] = [conv_norm(3, 4, 3, 2, act=nn.Hardswish, **norm)]
        for inputs, kernel, expanded, outputs, excited, hard, stride in self.BLOCKS:
            wide = expanded // 4
            excitation = SqueezeExcitation(wide, max(2, wide // 4), nn.ReLU, nn.Hardsigmoid) if excited else None
            layers.append(InvertedResidual(inputs // 4, wide, outputs // 4, kernel, stride,
                                           nn.Hardswish if hard else nn.ReLU, excitation, **norm))
        layers.append(conv_norm(24, 144, 1, act=nn.Hardswish, **norm))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(144, 64), nn.Hardswish(), nn.Dropout(0.0), nn.Linear(64, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class EfficientNetB0(nn.Module):
    # expansion, kernel, stride, inputs, outputs, repetitions; all channels are divided by 4. Stochastic depth is 0.
    STAGES = ((1, 3, 1, 8, 4, 1), (6, 3, 2, 4, 6, 2), (6, 5, 2, 6, 10, 2), (6, 3, 2, 10, 20, 3), (6, 5, 1, 20, 28, 3),
              (6, 5, 2, 28, 48, 4), (6, 3, 1, 48, 80, 1))

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 8, 3, 2, act=nn.SiLU)]
        for expansion, kernel, stride, inputs, outputs, repetitions in self.STAGES:
            for i in range(repetitions):
                wide = inputs * expansion
                excitation = SqueezeExcitation(wide, max(1, inputs // 4), nn.SiLU, nn.Sigmoid)
                layers.append(InvertedResidual(inputs, wide, outputs, kernel, stride if i == 0 else 1, nn.SiLU,
                                               excitation))
                inputs = outputs
        layers.append(conv_norm(80, 160, 1, act=nn.SiLU))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(160, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


# ---- ConvNeXt ------------------------------------------------------------------------------------------------------

class LayerNorm2d(nn.LayerNorm):
    """Over the channels of [B, C, H, W]."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.layer_scale = nn.Parameter(torch.full((dim, 1, 1), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + self.layer_scale * y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, depths: tuple[int, ...] = (2, 2, 6, 2), dims: tuple[int, ...] = (8, 16, 24, 32)) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, dims[0], 4, 4), LayerNorm2d(dims[0], eps=1e-6)]
        for i, (depth, dim) in enumerate(zip(depths, dims)):
            if i > 0:
                layers += [LayerNorm2d(dims[i - 1], eps=1e-6), nn.Conv2d(dims[i - 1], dim, 2, 2)]
            layers += [ConvNeXtBlock(dim) for _ in range(depth)]
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.features(x).mean([-2, -1])))


# ---- ViT -----------------------------------------------------------------------------------------------------------

class EncoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(dim, heads, dropout=0.0, batch_first=True)
        self.ln_2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(0.0), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + y
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    """On images of 32 x 32 pixels."""

    def __init__(self, dim: int = 32, depth: int = 3, heads: int = 4, patch: int = 8) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, dim, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.zeros(1, (32 // patch) ** 2 + 1, dim))
        self.layers = nn.Sequential(*(EncoderBlock(dim, heads) for _ in range(depth)))
        self.ln = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.ln(self.layers(x + self.pos_embedding))
        return self.head(x[:, 0])


# ---- U-Net ---------------------------------------------------------------------------------------------------------

def double_conv(inputs: int, outputs: int) -> nn.Sequential:
    def half(i: int) -> list[nn.Module]:
        return [nn.Conv2d(i, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU()]

    return nn.Sequential(*half(inputs), *half(outputs))


class UNet(nn.Module):
    def __init__(self, dims: tuple[int, ...] = (8, 16, 32)) -> None:
        super().__init__()
        self.down1 = double_conv(3, dims[0])
        self.down2 = double_conv(dims[0], dims[1])
        self.middle = double_conv(dims[1], dims[2])
        self.pool = nn.MaxPool2d(2)
        self.up2 = nn.ConvTranspose2d(dims[2], dims[1], 2, 2)
        self.conv2 = double_conv(2 * dims[1], dims[1])
        self.up1 = nn.ConvTranspose2d(dims[1], dims[0], 2, 2)
        self.conv1 = double_conv(2 * dims[0], dims[0])
        self.out = nn.Conv2d(dims[0], CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(self.pool(first))
        y = self.up2(self.middle(self.pool(second)))
        y = self.conv2(torch.cat([second, y], dim=1))
        y = self.conv1(torch.cat([first, self.up1(y)], dim=1))
        return self.out(y)
