// Images: decoding, scaling, and directories of classes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "learn/data/batch.h"
#include "learn/data/data_section.h"
#include "learn/data/files/own_data.h"
#include "learn/images/image_source.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"
#include "tests/unit/learn/images/image_fixture.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using test::jpeg_file;
using test::noise_image;
using test::png_file;
using test::put_file;
using test::smooth_image;

Result<Image> decoded(const std::string& file, std::size_t channels) {
  return decode_image(std::as_bytes(std::span(file)), "x.png", channels);
}

std::string image_error(const std::string& file, std::size_t channels = 3) {
  const auto image = decoded(file, channels);
  return image ? "decoded" : image.error().message;
}

// The schema's section of a run file.
Result<DataSpec> image_data_spec(const std::string& text) {
  FEDGE_TRY(document,
            config::parse_toml("[data]\ndataset = \"images\"\nname = \"mine\"\n" + text, "run.toml"));
  config::Reader root(document.root, "", "run.toml");
  config::Reader section = root.section("data");
  DataSpec spec = read_data(section);
  root.adopt(section);
  FEDGE_TRY_VOID(root.finish());
  return spec;
}

const std::string kKeys =
    "shape = [4, 5, 3]\nclasses = [\"cat\", \"dog\"]\npartition = { kind = \"own\", clients = 2 }\n";

DataSpec at(const std::filesystem::path& path, const std::string& more = "split = { test = 0 }\n") {
  auto spec = image_data_spec(kKeys + more);
  REQUIRE_MESSAGE(spec, spec.error().message);
  spec->directory = path.string();
  return *spec;
}

Result<Dataset> own(const DataSpec& spec, Purpose purpose = Purpose::kTraining) {
  return load_own(spec, purpose, 0, Rng(1));
}

}  // namespace

TEST_CASE("images: a PNG gives its pixels, as colours or as grey") {
  for (const std::size_t channels : {1U, 3U}) {
    const Image image = noise_image(7, 11, channels);
    const auto back = decoded(png_file(image), channels);
    REQUIRE_MESSAGE(back, back.error().message);
    CHECK(back->height == 7);
    CHECK(back->width == 11);
    CHECK(back->pixels == image.pixels);
  }
  const auto coloured = decoded(png_file(noise_image(7, 11, 1)), 3);
  REQUIRE(coloured);
  for (std::size_t i = 0; i < 77; ++i) CHECK(coloured->pixels[3 * i] == coloured->pixels[3 * i + 2]);
  CHECK(decoded(png_file(noise_image(7, 11, 3)), 1)->pixels.size() == 77);
}

TEST_CASE("images: a JPEG gives nearly its pixels, also a progressive one") {
  for (const int flags : {0, TJFLAG_PROGRESSIVE})
    for (const std::size_t channels : {1U, 3U}) {
      const Image image = smooth_image(40, 33, channels);
      const auto back = decoded(jpeg_file(image, 98, flags), channels);
      REQUIRE_MESSAGE(back, back.error().message);
      REQUIRE(back->pixels.size() == image.pixels.size());
      double error = 0;
      for (std::size_t i = 0; i < image.pixels.size(); ++i)
        error += std::abs(image.pixels[i] - back->pixels[i]);
      CHECK(error / static_cast<double>(image.pixels.size()) < 4);
    }
}

TEST_CASE("images: a file that is cut short or changed is refused, wherever") {
  const Image image = noise_image(16, 16, 3);
  for (const std::string& file :
       {png_file(image), jpeg_file(image), jpeg_file(image, 90, TJFLAG_PROGRESSIVE)}) {
    CHECK(image_error(file) == "decoded");
    // The last bytes of both formats are an end marker.
    for (std::size_t size = 0; size + 12 < file.size(); size += 1 + file.size() / 97) {
      CAPTURE(size);
      const std::string error = image_error(file.substr(0, size));
      CHECK(contains(error, "x.png"));
      CHECK((contains(error, "damaged or truncated") || contains(error, "neither a PNG nor a JPEG")));
    }
  }
  // Every changed byte gives an error or another image, never a crash.
  for (std::string file : {png_file(image), jpeg_file(image)})
    for (std::size_t i = 0; i < file.size(); i += 1 + file.size() / 300) {
      file[i] = static_cast<char>(file[i] ^ 0x5a);
      (void)image_error(file);
      file[i] = static_cast<char>(file[i] ^ 0x5a);
    }
  CHECK(contains(image_error("GIF89a and more"), "neither a PNG nor a JPEG"));
  CHECK(contains(image_error(""), "neither a PNG nor a JPEG"));
}

TEST_CASE("images: a size that is a lie allocates nothing") {
  std::string file = png_file(noise_image(4, 4, 3));
  // Width and height in the header, whose checksum then differs or, below, is right.
  const auto size = [&](std::uint32_t value) {
    std::string changed = file;
    for (const std::size_t at : {16U, 20U})
      for (unsigned i = 0; i < 4; ++i) changed[at + i] = static_cast<char>(value >> (24 - 8 * i));
    const uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(changed.data() + 12), 17);
    for (unsigned i = 0; i < 4; ++i) changed[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
    return changed;
  };
  for (const std::uint32_t side : {100'000U, 1'000'000U})
    CHECK(contains(image_error(size(side)), "at most 67108864 are supported"));
  CHECK(contains(image_error(size(2'000)), "damaged or truncated"));
}

TEST_CASE("images: scaling takes the mean of what a pixel covers") {
  // Each pixel of the half as large image is close to the mean of its four, of a smooth image.
  const Image image = smooth_image(20, 30, 3);
  const Image half = resized(image, 10, 15);
  CHECK(half.height == 10);
  CHECK(half.width == 15);
  REQUIRE(half.pixels.size() == 450);
  const auto pixel = [](const Image& of, std::size_t y, std::size_t x, std::size_t c) {
    return static_cast<int>(of.pixels[(y * of.width + x) * of.channels + c]);
  };
  for (std::size_t y = 1; y < 9; ++y)
    for (std::size_t x = 1; x < 14; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        const int mean = (pixel(image, 2 * y, 2 * x, c) + pixel(image, 2 * y + 1, 2 * x, c) +
                          pixel(image, 2 * y, 2 * x + 1, c) + pixel(image, 2 * y + 1, 2 * x + 1, c)) /
                         4;
        if (mean > 20 && mean < 180) CHECK(std::abs(pixel(half, y, x, c) - mean) <= 2);
      }
  CHECK(resized(image, 20, 30).pixels == image.pixels);
  // One colour stays that colour, up and down.
  const Image flat{9, 9, 1, std::vector<std::uint8_t>(81, 77)};
  for (const std::size_t size : {1U, 4U, 9U, 50U})
    CHECK(resized(flat, size, 2 * size).pixels == std::vector<std::uint8_t>(2 * size * size, 77));
}

TEST_CASE("images: the directories are the classes, and values are normalised by channel") {
  const test::TemporaryDirectory directory;
  const Image cat = noise_image(4, 5, 3, 1);
  const Image dog = noise_image(4, 5, 3, 2);
  put_file(directory.path() / "dog" / "b.PNG", png_file(dog));
  put_file(directory.path() / "cat" / "a.png", png_file(cat));
  put_file(directory.path() / "cat" / "notes.txt", "not an image");
  put_file(directory.path() / "readme.md", "beside the classes");
  const auto data = own(at(directory.path(), "split = { test = 0 }\nmean = [10, 20, 30]\ndeviation = [2]\n"));
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->labels == std::vector<Label>{0, 1});
  CHECK(data->class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(data->floats.size() == 0);  // a byte for each value
  BatchBuffer buffer(60, false, 2);
  const std::vector<std::uint32_t> samples = {1, 0};
  const Batch batch = buffer.read(*data, samples);
  for (std::size_t i = 0; i < 60; ++i) {
    const float mean = 10.0F * static_cast<float>(1 + i % 3);
    CHECK(batch.inputs[i] == (static_cast<float>(dog.pixels[i]) - mean) / 2);
    CHECK(batch.inputs[60 + i] == (static_cast<float>(cat.pixels[i]) - mean) / 2);
  }
  const Normalisation other{{1, 1, 1}, {4, 4, 4}};
  CHECK(buffer.read(*data, samples, false, &other).inputs[0] == (static_cast<float>(dog.pixels[0]) - 1) / 4);
}

TEST_CASE("images: an error names the file and what is wrong") {
  const test::TemporaryDirectory directory;
  const auto refused = [&](const DataSpec& spec) {
    const auto data = own(spec);
    return data ? std::string("loaded") : data.error().message;
  };
  CHECK(contains(refused(at(directory.path())), "has no directory, named like a class"));
  put_file(directory.path() / "cat" / "a.png", png_file(noise_image(5, 4, 3)));
  CHECK(contains(refused(at(directory.path())), "a.png: the image has 5 x 4 pixels (height x width)"));
  CHECK(refused(at(directory.path(), "split = { test = 0 }\nresize = true\n")) == "loaded");
  const std::string file = jpeg_file(noise_image(4, 5, 3));
  put_file(directory.path() / "cat" / "a.png", file.substr(0, file.size() - 40));
  CHECK(contains(refused(at(directory.path())), "a.png: the image is damaged or truncated"));
  put_file(directory.path() / "cat" / "a.png", file);
  CHECK(refused(at(directory.path())) == "loaded");
  CHECK(contains(refused(at(directory.path(), "split = { kind = \"time\" }\n")),
                 "images have no order of time"));
  CHECK(contains(refused(at(directory.path(), "split = { kind = \"file\" }\n")),
                 "no directory whose name begins"));
  put_file(directory.path() / "bird" / "a.png", file);
  CHECK(contains(refused(at(directory.path())), "bird: the directory's name is not one of data.classes"));
}

TEST_CASE("images: splits by share and by directory") {
  const test::TemporaryDirectory directory;
  for (int i = 0; i < 10; ++i)
    for (const char* name : {"cat", "dog"}) {
      const std::string file = png_file(noise_image(4, 5, 3, static_cast<std::uint64_t>(i)));
      put_file(directory.path() / "all" / name / (std::to_string(i) + ".png"), file);
      put_file(
          directory.path() / "parts" / (i < 7 ? "train" : "test-set") / name / (std::to_string(i) + ".png"),
          file);
    }
  const auto sizes = [&](const std::string& place, const std::string& split) {
    const DataSpec spec = at(directory.path() / place, split);
    const auto training = own(spec);
    const auto test = own(spec, Purpose::kEvaluation);
    REQUIRE_MESSAGE(training, training.error().message);
    REQUIRE_MESSAGE(test, test.error().message);
    return std::pair(training->size(), test->size());
  };
  CHECK(sizes("all", "split = { test = 0.3 }\n") == std::pair<std::size_t, std::size_t>(14, 6));
  CHECK(sizes("parts", "split = { kind = \"file\" }\n") == std::pair<std::size_t, std::size_t>(14, 6));
  std::filesystem::remove_all(directory.path() / "parts" / "train");
  CHECK(sizes("parts", "split = { kind = \"file\" }\n") == std::pair<std::size_t, std::size_t>(0, 6));
}

TEST_CASE("images: masks give each pixel its class") {
  const test::TemporaryDirectory directory;
  const std::string keys = "split = { test = 0 }\ntask = \"segmentation\"\n";
  const auto mask = [](std::size_t height, std::size_t width, std::vector<std::uint8_t> pixels) {
    return png_file(Image{height, width, 1, std::move(pixels)});
  };
  const auto refused = [&](const std::string& more = "") {
    const auto data = own(at(directory.path(), keys + more));
    return data ? std::string("loaded") : data.error().message;
  };
  CHECK(contains(refused(), "images does not exist; segmentation needs"));
  put_file(directory.path() / "images" / "b.jpg", jpeg_file(noise_image(4, 5, 3)));
  CHECK(contains(refused(), "masks does not exist; segmentation needs"));
  put_file(directory.path() / "masks" / "other.png", "unused");
  CHECK(contains(refused(), "b.jpg: there is no mask"));
  put_file(directory.path() / "masks" / "b.png", mask(5, 4, std::vector<std::uint8_t>(20)));
  CHECK(contains(refused(), "b.png: the mask has 5 x 4 pixels (height x width), but its image has 4 x 5"));
  put_file(directory.path() / "masks" / "b.png", png_file(noise_image(4, 5, 3)));
  CHECK(contains(refused(), "b.png: a mask must be a PNG file of grey pixels of 8 bits"));
  put_file(directory.path() / "masks" / "b.png", jpeg_file(noise_image(4, 5, 3)));
  CHECK(contains(refused(), "b.png: a mask must be a PNG file"));
  std::vector<std::uint8_t> classes(20);
  classes[7] = 2;
  put_file(directory.path() / "masks" / "b.png", mask(4, 5, classes));
  CHECK(contains(refused(), "b.png: the pixel in row 1, column 2 is 2, expected 0 to 1 for the 2 classes"));
  classes[7] = 1;
  put_file(directory.path() / "masks" / "b.png", mask(4, 5, classes));
  put_file(directory.path() / "images" / "a.png", png_file(noise_image(4, 5, 3, 2)));
  put_file(directory.path() / "masks" / "a.png", mask(4, 5, std::vector<std::uint8_t>(20, 1)));

  const DataSpec spec = at(directory.path(), keys);
  const auto info = describe(spec);
  REQUIRE(info);
  CHECK(info->target() == TargetShape{TargetKind::kPoints, 2, 20});
  const auto data = own(spec);
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->target() == info->target());
  CHECK(data->labels == std::vector<Label>{1, 0});
  REQUIRE(data->targets.points.size() == 40);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(data->targets.points[i] == 1);
    CHECK(data->targets.points[20 + i] == classes[i]);
  }
  // A mask is scaled like its image; a pixel keeps a class.
  put_file(directory.path() / "images" / "a.png", png_file(noise_image(8, 10, 3, 2)));
  std::vector<std::uint8_t> large(80, 1);
  large[11] = 0;  // the pixel on which the scaled one's middle lies
  put_file(directory.path() / "masks" / "a.png", mask(8, 10, large));
  const auto scaled = own(at(directory.path(), keys + "resize = true\n"));
  REQUIRE_MESSAGE(scaled, scaled.error().message);
  CHECK(scaled->targets.points[0] == 0);
  for (std::size_t i = 1; i < 20; ++i) CHECK(scaled->targets.points[i] == 1);

  const auto spec_error = [](const std::string& more) {
    const auto wrong = image_data_spec(kKeys + more);
    return wrong ? std::string("accepted") : wrong.error().message;
  };
  CHECK(contains(spec_error("task = \"regression\"\n"), "images have a class, or masks"));
  const auto large_image =
      image_data_spec("shape = [300, 300, 1]\nclasses = [\"cat\", \"dog\"]\ntask = \"segmentation\"\n");
  REQUIRE_FALSE(large_image);
  CHECK(contains(large_image.error().message, "an image has 90000 pixels; in segmentation at most 65536"));
}

TEST_CASE("images: what a run file cannot mean is refused") {
  const auto refused = [](const std::string& text) {
    const auto spec = image_data_spec(text);
    return spec ? std::string("accepted") : spec.error().message;
  };
  CHECK(refused(kKeys) == "accepted");
  const std::string rest = "classes = [\"cat\", \"dog\"]\npartition = { kind = \"own\", clients = 2 }\n";
  CHECK(contains(refused("shape = [4, 5]\n" + rest), "must have three numbers"));
  CHECK(contains(refused("shape = [4, 5, 2]\n" + rest), "1 or 3 channels"));
  CHECK(contains(refused("shape = [4000, 5000, 3]\n" + rest), "more than 1000000 features"));
  CHECK(contains(refused(kKeys + "mean = [1, 2]\n"), "an image has 3 channels"));
  CHECK(contains(refused("shape = [4, 5, 1]\nclasses = [\"cat\", \"cat\"]\n"), "contains a name twice"));
  CHECK(contains(refused("shape = [4, 5, 1]\nclasses = [\"cat\"]\n"), "expected 2 to"));
}

}  // namespace fedge::learn
