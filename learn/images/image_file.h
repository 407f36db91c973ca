// Decodes images: PNG through libpng, JPEG through libjpeg-turbo. The size is known before memory is
// allocated for the pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::learn {

struct Image {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;          // 1: grey, 3: red, green, blue
  std::vector<std::uint8_t> pixels;  // row-major, the channels of a pixel side by side
};

inline constexpr std::size_t kMaxImageBytes = std::size_t{64} << 20;   // of a file
inline constexpr std::size_t kMaxImagePixels = std::size_t{64} << 20;  // height times width

struct ImageSize {
  std::size_t height = 0;
  std::size_t width = 0;
};

// The size that the file states. Messages begin with `name`. kCorrupt if it is neither a PNG nor a JPEG file,
// or its header is damaged; kResource for more than kMaxImagePixels.
Result<ImageSize> image_size(std::span<const std::byte> file, const std::string& name);

// Converts to `channels` channels, 1 or 3, of 8 bits. Transparent pixels are put on black. The orientation in
// EXIF data is ignored. Errors are those of image_size(); kCorrupt also for pixels that are damaged or end
// too early: a partial image is none.
Result<Image> decode_image(std::span<const std::byte> file, const std::string& name, std::size_t channels);

// Scales an image to another size, as Pillow does with Image.BILINEAR: each pixel is the weighted mean of all
// pixels that its area covers, and of at least two in each direction. Differs from Pillow by at most 1.
Image resized(const Image& image, std::size_t height, std::size_t width);

}  // namespace fedge::learn
