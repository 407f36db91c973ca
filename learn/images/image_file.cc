#include "learn/images/image_file.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/check.h"

namespace fedge::learn {
namespace {

Error damaged_image(const std::string& name, const std::string& reason) {
  return {ErrorCode::kCorrupt, name + ": the image is damaged or truncated: " + reason};
}

bool begins_with(std::span<const std::byte> file, std::span<const std::uint8_t> start) {
  return file.size() > start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

constexpr std::uint8_t kPngStart[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::uint8_t kJpegStart[] = {0xff, 0xd8, 0xff};

Result<ImageSize> bounded(std::size_t height, std::size_t width, const std::string& name) {
  if (height == 0 || width == 0) return damaged_image(name, "it has no pixels");
  if (height > kMaxImagePixels / width)
    return Error{ErrorCode::kResource, name + ": the image has " + std::to_string(height) + " x " +
                                           std::to_string(width) + " pixels; at most " +
                                           std::to_string(kMaxImagePixels) + " are supported"};
  return ImageSize{height, width};
}

// libpng's image of a file in memory.
class Png {
 public:
  static Result<std::unique_ptr<Png>> open(std::span<const std::byte> file, const std::string& name) {
    auto png = std::make_unique<Png>();
    png->image_.version = PNG_IMAGE_VERSION;
    if (::png_image_begin_read_from_memory(&png->image_, file.data(), file.size()) == 0)
      return damaged_image(name, png->image_.message);
    return png;
  }
  Png() = default;
  ~Png() { ::png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  Result<ImageSize> size(const std::string& name) const { return bounded(image_.height, image_.width, name); }
  Result<void> read(Image& image, const std::string& name) {
    image_.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    constexpr png_color kBlack{0, 0, 0};
    if (::png_image_finish_read(&image_, &kBlack, image.pixels.data(), 0, nullptr) == 0)
      return damaged_image(name, image_.message);
    return {};
  }

 private:
  png_image image_{};
};

struct CloseTurbo {
  void operator()(void* handle) const { ::tjDestroy(handle); }
};

class Jpeg {
 public:
  Jpeg() : handle_(::tjInitDecompress()) { FEDGE_CHECK(handle_ != nullptr, "memory for a decoder"); }

  Result<ImageSize> size(std::span<const std::byte> file, const std::string& name) const {
    int width = 0;
    int height = 0;
    int sampling = 0;
    int colours = 0;
    if (::tjDecompressHeader3(handle_.get(), bytes(file), file.size(), &width, &height, &sampling,
                              &colours) != 0)
      return damaged_image(name, ::tjGetErrorStr2(handle_.get()));
    return bounded(static_cast<std::size_t>(height), static_cast<std::size_t>(width), name);
  }
  // A warning of the library is an error here: it fills what is missing with grey.
  Result<void> read(std::span<const std::byte> file, Image& image, const std::string& name) const {
    constexpr int kFlags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
    if (::tjDecompress2(handle_.get(), bytes(file), file.size(), image.pixels.data(),
                        static_cast<int>(image.width), 0, static_cast<int>(image.height),
                        image.channels == 1 ? TJPF_GRAY : TJPF_RGB, kFlags) != 0)
      return damaged_image(name, ::tjGetErrorStr2(handle_.get()));
    return {};
  }

 private:
  static const unsigned char* bytes(std::span<const std::byte> file) {
    return reinterpret_cast<const unsigned char*>(file.data());
  }
  std::unique_ptr<void, CloseTurbo> handle_;
};

Error no_image(const std::string& name) {
  return {ErrorCode::kCorrupt, name + " is neither a PNG nor a JPEG file"};
}

// The weights with which source pixels make up a target pixel, in one direction.
struct Weights {
  std::size_t first = 0;
  std::vector<double> of;
};

std::vector<Weights> weights_of(std::size_t from, std::size_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);  // half the width of the triangle
  std::vector<Weights> weights(to);
  for (std::size_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const double begin = std::max(centre - support + 0.5, 0.0);
    const double end = std::min(centre + support + 0.5, static_cast<double>(from));
    weights[i].first = static_cast<std::size_t>(begin);
    double sum = 0;
    for (std::size_t p = weights[i].first; p < static_cast<std::size_t>(end); ++p) {
      const double distance = (static_cast<double>(p) + 0.5 - centre) / support;
      weights[i].of.push_back(std::max(1 - std::abs(distance), 0.0));
      sum += weights[i].of.back();
    }
    for (double& weight : weights[i].of) weight /= sum;
  }
  return weights;
}

// Scales along one direction: `lines` lines of pixels that are `step` apart, of the lines `next` apart.
struct Direction {
  std::size_t lines;
  std::size_t step, next;        // in the source
  std::size_t to_step, to_next;  // in the target
};

void scale_lines(const std::uint8_t* from, std::uint8_t* to, const Direction& along,
                 const std::vector<Weights>& weights) {
  for (std::size_t line = 0; line < along.lines; ++line)
    for (std::size_t i = 0; i < weights.size(); ++i) {
      double sum = 0.5;
      const std::uint8_t* pixel = from + line * along.next + weights[i].first * along.step;
      for (const double weight : weights[i].of) {
        sum += weight * *pixel;
        pixel += along.step;
      }
      to[line * along.to_next + i * along.to_step] = static_cast<std::uint8_t>(std::min(sum, 255.0));
    }
}

}  // namespace

Result<ImageSize> image_size(std::span<const std::byte> file, const std::string& name) {
  if (begins_with(file, kJpegStart)) return Jpeg().size(file, name);
  if (!begins_with(file, kPngStart)) return no_image(name);
  FEDGE_TRY(png, Png::open(file, name));
  return png->size(name);
}

Result<Image> decode_image(std::span<const std::byte> file, const std::string& name, std::size_t channels) {
  FEDGE_CHECK(channels == 1 || channels == 3, "grey or colours");
  const auto sized = [&](const ImageSize& size) {
    return Image{size.height, size.width, channels,
                 std::vector<std::uint8_t>(size.height * size.width * channels)};
  };
  if (begins_with(file, kJpegStart)) {
    const Jpeg jpeg;
    FEDGE_TRY(size, jpeg.size(file, name));
    Image image = sized(size);
    FEDGE_TRY_VOID(jpeg.read(file, image, name));
    return image;
  }
  if (!begins_with(file, kPngStart)) return no_image(name);
  FEDGE_TRY(png, Png::open(file, name));
  FEDGE_TRY(size, png->size(name));
  Image image = sized(size);
  FEDGE_TRY_VOID(png->read(image, name));
  return image;
}

Image resized(const Image& image, std::size_t height, std::size_t width) {
  const std::size_t channels = image.channels;
  Image wide{image.height, width, channels, std::vector<std::uint8_t>(image.height * width * channels)};
  const auto across = weights_of(image.width, width);
  for (std::size_t row = 0; row < image.height; ++row)
    scale_lines(image.pixels.data() + row * image.width * channels,
                wide.pixels.data() + row * width * channels, {channels, channels, 1, channels, 1}, across);
  Image result{height, width, channels, std::vector<std::uint8_t>(height * width * channels)};
  const std::size_t row = width * channels;
  scale_lines(wide.pixels.data(), result.pixels.data(), {row, row, 1, row, 1},
              weights_of(image.height, height));
  return result;
}

}  // namespace fedge::learn
