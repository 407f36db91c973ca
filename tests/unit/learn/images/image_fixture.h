// Images for tests, written by libpng and libjpeg-turbo.
#pragma once

#include <doctest/doctest.h>
#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/images/image_file.h"

namespace fedge::learn::test {

inline learn::Image noise_image(std::size_t height, std::size_t width, std::size_t channels,
                                std::uint64_t seed = 1) {
  learn::Image image{height, width, channels, {}};
  Rng rng(seed);
  for (std::size_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(rng.below(256)));
  return image;
}

// Slow changes, which JPEG keeps.
inline learn::Image smooth_image(std::size_t height, std::size_t width, std::size_t channels) {
  learn::Image image{height, width, channels, {}};
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>((3 * y + 2 * x + 40 * c) % 200));
  return image;
}

inline std::string png_file(const learn::Image& image) {
  png_image made{};
  made.version = PNG_IMAGE_VERSION;
  made.height = static_cast<png_uint_32>(image.height);
  made.width = static_cast<png_uint_32>(image.width);
  made.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  REQUIRE(::png_image_write_to_memory(&made, nullptr, &size, 0, image.pixels.data(), 0, nullptr) != 0);
  std::string bytes(size, '\0');
  REQUIRE(::png_image_write_to_memory(&made, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) != 0);
  bytes.resize(size);
  return bytes;
}

inline std::string jpeg_file(const learn::Image& image, int quality = 95, int flags = 0) {
  void* handle = ::tjInitCompress();
  REQUIRE(handle != nullptr);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const int done = ::tjCompress2(handle, image.pixels.data(), static_cast<int>(image.width), 0,
                                 static_cast<int>(image.height), image.channels == 1 ? TJPF_GRAY : TJPF_RGB,
                                 &out, &size, image.channels == 1 ? TJSAMP_GRAY : TJSAMP_444, quality, flags);
  REQUIRE(done == 0);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  ::tjFree(out);
  ::tjDestroy(handle);
  return bytes;
}

inline void put_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  REQUIRE(out.flush().good());
}

}  // namespace fedge::learn::test
