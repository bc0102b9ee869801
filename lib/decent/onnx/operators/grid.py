"""Images by other coordinates: blocks put together, regions cut out."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor


# Col2Im (opset 18) for other than two dimensions, or padding that differs between the ends of an axis.
def _col2im(self, x: Tensor, image: List[int], block: List[int], dilations: List[int], pads: List[int],
            strides: List[int]) -> Tensor:
    # where each element of each block lies in the padded image
    place = torch.zeros([1, 1], dtype=torch.int64, device=x.device)
    padded: List[int] = []
    count = 1
    for d in range(len(image)):
        size = image[d] + pads[d] + pads[len(image) + d]
        blocks = self._quotient(size - dilations[d] * (block[d] - 1) - 1, strides[d]) + 1
        inside = torch.arange(block[d], device=x.device) * dilations[d]
        starts = torch.arange(blocks, device=x.device) * strides[d]
        here = (inside.unsqueeze(1) + starts).unsqueeze(1)
        place = (place.unsqueeze(2).unsqueeze(1) * size + here).flatten(2).flatten(0, 1)
        padded.append(size)
        count *= size
    parts = x.unflatten(1, [-1, place.size(0)]).flatten(2)
    y = torch.zeros([parts.size(0), parts.size(1), count], dtype=x.dtype, device=x.device)
    y = y.index_add(2, place.flatten(), parts).unflatten(2, padded)
    for d in range(len(image)):
        y = y.narrow(2 + d, pads[d], image[d])
    return y


# RoiAlign (opset 10), along one axis, [regions, bins, samples, 2]: elements and weights; the samples that exist; their
# number.
def _roi_samples(self, start: Tensor, extent: Tensor, bins: int, ratio: int,
                 length: int) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    cell = extent / bins
    count = torch.full_like(cell, float(ratio)) if ratio > 0 else torch.ceil(cell)
    most = int(count.max()) if count.numel() > 0 else 1
    sample = torch.arange(max(most, 1), device=cell.device)
    inside = ((sample + 0.5) / count.unsqueeze(1)).unsqueeze(1)
    bin = torch.arange(bins, device=cell.device).unsqueeze(1)
    position = start.reshape(-1, 1, 1) + (bin + inside) * cell.reshape(-1, 1, 1)
    on_map = (position >= -1.0) & (position <= length)
    position = torch.clamp(position, 0.0, float(length - 1))
    low = torch.floor(position)
    high = torch.clamp(low + 1.0, max=float(length - 1))
    part = position - low
    weight = torch.stack([1.0 - part, part], 3) * on_map.unsqueeze(3).to(part.dtype)
    there = (sample < count.unsqueeze(1)).unsqueeze(1).unsqueeze(3).expand_as(weight)
    return torch.stack([low, high], 3).to(torch.int64), weight, there, count


# RoiAlign (opset 10); half_pixel is opset 16's.
def _roi_align(self, x: Tensor, rois: Tensor, batch: Tensor, height: int, width: int, ratio: int, scale: float,
               half_pixel: bool, largest: bool) -> Tensor:
    corners = rois * scale - (0.5 if half_pixel else 0.0)
    start = corners[:, :2]
    extent = corners[:, 2:] - start
    if not half_pixel:
        extent = torch.clamp(extent, 1.0)
    row, row_weight, row_there, rows = self._roi_samples(start[:, 1], extent[:, 1], height, ratio, x.size(2))
    column, column_weight, column_there, columns = self._roi_samples(start[:, 0], extent[:, 0], width, ratio, x.size(3))
    row, column = row.flatten(1).unsqueeze(2), column.flatten(1).unsqueeze(1)
    weight = row_weight.flatten(1).unsqueeze(2) * column_weight.flatten(1).unsqueeze(1)
    there = row_there.flatten(1).unsqueeze(2) & column_there.flatten(1).unsqueeze(1)
    # [regions, rows, columns, channels], then bins and what lies in them apart
    y = x[batch.reshape(-1, 1, 1), :, row, column] * weight.unsqueeze(3)
    y = y.masked_fill(~there.unsqueeze(3), float("-inf") if largest else 0.0)
    y = y.unflatten(2, [width, -1]).unflatten(1, [height, -1])
    if largest:
        y = y.amax([2, 4])
        y = y.masked_fill(torch.isneginf(y), 0.0)
    else:
        y = y.sum([2, 4]) / torch.clamp(rows * columns, 1.0).reshape(-1, 1, 1, 1)
    return y.permute([0, 3, 1, 2])


# NonMaxSuppression (opset 10): [chosen, 3], image, class and box.
def _non_max_suppression(self, boxes: Tensor, scores: Tensor, most: int, overlap: float, lowest: Optional[float],
                         center: bool) -> Tensor:
    if center:
        low, high = boxes[:, :, :2] - boxes[:, :, 2:] / 2, boxes[:, :, :2] + boxes[:, :, 2:] / 2
    else:
        low, high = torch.min(boxes[:, :, :2], boxes[:, :, 2:]), torch.max(boxes[:, :, :2], boxes[:, :, 2:])
    area = (high - low).prod(2)
    chosen: List[Tensor] = [torch.zeros([0, 3], dtype=torch.int64, device=boxes.device)]
    for b in range(scores.size(0)):
        for c in range(scores.size(1)):
            _, left = torch.sort(scores[b, c], stable=True, dim=0, descending=True)
            if lowest is not None:
                left = left[scores[b, c][left] > lowest]
            count = 0
            while left.numel() > 0 and count < most:
                best = left[0]
                count += 1
                chosen.append(torch.tensor([[b, c, int(best)]], device=boxes.device))
                left = left[1:]
                sides = torch.min(high[b, best], high[b, left]) - torch.max(low[b, best], low[b, left])
                shared = torch.clamp(sides, 0.0).prod(1)
                left = left[~(shared / (area[b, best] + area[b, left] - shared) > overlap)]
    return torch.cat(chosen)
