// CIFAR's binary files.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "learn/data/batch.h"
#include "learn/data/kinds.h"
#include "tests/support/text.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using test::data_spec;
using test::TemporaryDirectory;
using test::write_text;

// A record whose red, green and blue pixels count up from different numbers.
std::string cifar_record(const std::string& labels, int red) {
  std::string record = labels;
  for (int colour = 0; colour < 3; ++colour)
    for (int pixel = 0; pixel < 1024; ++pixel) record += static_cast<char>((red + 50 * colour + pixel) % 256);
  return record;
}

Result<Dataset> load_cifar(const TemporaryDirectory& directory, const std::string& keys,
                           Split split = Split::kTrain) {
  auto spec = data_spec("dataset = " + keys + "\nmean = [0]\ndeviation = [1]\n");
  REQUIRE_MESSAGE(spec, spec.error().message);
  spec->directory = directory.path().string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  return (*source)->load(*spec, split);
}

const std::string kTen = "\"cifar-10\"\nsplit = { test = 0 }";

}  // namespace

TEST_CASE("cifar: records are images with their colours last") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "a.bin", cifar_record("\x07", 3) + cifar_record(std::string(1, '\0'), 9));
  const auto data = load_cifar(directory, kTen);
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->labels == std::vector<Label>{7, 0});
  CHECK(data->class_names.at(7) == "horse");
  CHECK(data->shape == InputShape{32, 32, 3});
  BatchBuffer buffer(3072, false, 1);
  const std::vector<std::uint32_t> second = {1};
  const Batch batch = buffer.read(*data, second);
  for (std::size_t pixel = 0; pixel < 1024; ++pixel)
    for (std::size_t colour = 0; colour < 3; ++colour)
      CHECK(batch.inputs[3 * pixel + colour] == static_cast<float>((9 + 50 * colour + pixel) % 256));
}

TEST_CASE("cifar: the hundred classes have a coarse and a fine label") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "a.bin", cifar_record(std::string("\x13\x63", 2), 3));
  const auto fine = load_cifar(directory, "\"cifar-100\"\nsplit = { test = 0 }");
  REQUIRE_MESSAGE(fine, fine.error().message);
  CHECK(fine->labels == std::vector<Label>{99});
  CHECK(fine->classes == 100);
  const auto coarse = load_cifar(directory, "\"cifar-100\"\nlabels = \"coarse\"\nsplit = { test = 0 }");
  REQUIRE(coarse);
  CHECK(coarse->labels == std::vector<Label>{19});
  CHECK(coarse->classes == 20);
}

TEST_CASE("cifar: test files, and files that do not fit") {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& keys) {
    const auto data = load_cifar(directory, keys);
    return data ? std::string("loaded") : data.error().message;
  };
  write_text(directory.path() / "data_batch_1.bin", cifar_record("\x01", 0) + cifar_record("\x02", 0));
  write_text(directory.path() / "test_batch.bin", cifar_record("\x03", 0));
  const std::string by_file = "\"cifar-10\"\nsplit = { kind = \"file\" }";
  CHECK(load_cifar(directory, by_file)->labels == std::vector<Label>{1, 2});
  CHECK(load_cifar(directory, by_file, Split::kTest)->labels == std::vector<Label>{3});
  CHECK(load_cifar(directory, kTen)->size() == 3);
  write_text(directory.path() / "test_batch.bin", cifar_record("\x0a", 0));
  CHECK(contains(refused(kTen), "the label of record 0 is 10, expected 0 to 9"));
  write_text(directory.path() / "test_batch.bin", cifar_record("\x01", 0).substr(1));
  CHECK(contains(refused(kTen), "has 3072 bytes, expected a multiple of 3073"));
  write_text(directory.path() / "test_batch.bin", "");
  CHECK(contains(refused(kTen), "has 0 bytes"));
}

}  // namespace fedge::learn
