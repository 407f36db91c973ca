#include "learn/arrays/array_source.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "learn/arrays/npy.h"
#include "learn/data/kinds.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using test::data_spec;
using test::TemporaryDirectory;
using test::write_text;

std::string npy_start(const std::string& dictionary) {
  std::string text = "\x93NUMPY";
  text += std::string("\x01\x00", 2);
  text += static_cast<char>(dictionary.size() & 0xFF);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary;
}

template <class T>
std::string npy(const std::string& descr, const std::string& shape, const std::vector<T>& values) {
  std::string text =
      npy_start("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }\n");
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return text;
}

const std::string kArrays = "dataset = \"arrays\"\nclass_count = 3\nsplit = { test = 0 }\n";
const std::string kLabels = npy<std::int64_t>("<i8", "2,", {2, 0});

// The samples of x.npy and y.npy, or the error without the directory's name.
Result<Dataset> load_arrays(const std::string& keys, const std::string& x, const std::string& y = kLabels) {
  const TemporaryDirectory directory;
  auto spec = data_spec(kArrays + keys);
  if (!spec) return spec.error();
  write_text(directory.path() / "x.npy", x);
  write_text(directory.path() / "y.npy", y);
  spec->directory = directory.path().string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  auto data = (*source)->load(*spec, Split::kTrain);
  if (data) return data;
  Error error = data.error();
  for (std::size_t at = 0; (at = error.message.find(spec->directory)) != std::string::npos;)
    error.message.erase(at, spec->directory.size() + 1);
  return error;
}

std::string arrays_error(const std::string& keys, const std::string& x, const std::string& y = kLabels) {
  const auto data = load_arrays(keys, x, y);
  return data ? "no error" : data.error().message;
}

std::vector<float> features(const Result<Dataset>& data) {
  REQUIRE_MESSAGE(data, data.error().message);
  return {data->floats.data(), data->floats.data() + data->floats.size()};
}

}  // namespace

TEST_CASE("arrays: elements of every type become the same features") {
  const std::vector<float> expected = {1, 0, 7, 100};
  const auto check = [&](const std::string& x) {
    const auto data = load_arrays("shape = [2]\n", x);
    CHECK(features(data) == expected);
    CHECK(data->shape == InputShape{1, 2, 1});
    CHECK(data->labels == std::vector<Label>{2, 0});
    CHECK(data->classes == 3);
  };
  check(npy<std::int8_t>("|i1", "2, 2", {1, 0, 7, 100}));
  check(npy<std::uint8_t>("|u1", "2, 2", {1, 0, 7, 100}));
  check(npy<std::int16_t>("<i2", "2, 2", {1, 0, 7, 100}));
  check(npy<std::uint16_t>("<u2", "2, 2", {1, 0, 7, 100}));
  check(npy<std::int32_t>("<i4", "2, 2", {1, 0, 7, 100}));
  check(npy<std::uint32_t>("<u4", "2, 2", {1, 0, 7, 100}));
  check(npy<std::int64_t>("<i8", "2, 2", {1, 0, 7, 100}));
  check(npy<std::uint64_t>("<u8", "2, 2", {1, 0, 7, 100}));
  check(npy<float>("<f4", "2, 2", {1, 0, 7, 100}));
  check(npy<double>("<f8", "2, 2", {1, 0, 7, 100}));
  check(npy<std::uint16_t>("<f2", "2, 2", {0x3C00, 0x0000, 0x4700, 0x5640}));
  CHECK(features(load_arrays("shape = [2]\n", npy<std::uint8_t>("|b1", "2, 2", {1, 0, 0, 1}))) ==
        std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("arrays: float16 has subnormal, negative, infinite and undefined values") {
  const std::vector<std::uint16_t> bits = {0x0001, 0x03FF, 0x8400, 0xFBFF, 0x7C00, 0xFC00, 0x7E00};
  std::vector<double> values(bits.size());
  to_doubles(ElementType::kFloat16, std::as_bytes(std::span(bits)), values);
  CHECK(values[0] == std::ldexp(1.0, -24));
  CHECK(values[1] == std::ldexp(1023.0, -24));
  CHECK(values[2] == -std::ldexp(1.0, -14));
  CHECK(values[3] == -65504.0);
  CHECK(values[4] == std::numeric_limits<double>::infinity());
  CHECK(values[5] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(values[6]));
}

TEST_CASE("arrays: samples have their channels last, and each channel is scaled by its own numbers") {
  const std::string keys = "shape = [1, 2, 3]\nmean = [0, 10, 20]\ndeviation = [1, 2, 4]\n";
  const std::vector<float> expected = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};
  // Pixel k of all has the values k, 10 + 2k and 20 + 4k.
  CHECK(features(load_arrays(keys, npy<float>("<f4", "2, 1, 2, 3",
                                              {1, 12, 24, 2, 14, 28, 3, 16, 32, 4, 18, 36}))) == expected);
  CHECK(features(load_arrays(
            keys + "layout = \"channels-first\"\n",
            npy<float>("<f4", "2, 3, 1, 2", {1, 2, 12, 14, 24, 28, 3, 4, 16, 18, 32, 36}))) == expected);
  // An axis of length 1 may be missing or added.
  CHECK(load_arrays(keys, npy<float>("<f4", "2, 2, 3", std::vector<float>(12, 1.0F))));
  CHECK(load_arrays("shape = [2, 3]\n", npy<float>("<f4", "2, 2, 3, 1", std::vector<float>(12, 1.0F))));
}

TEST_CASE("arrays: an error names file, array and element, and what would be right") {
  const std::string good = npy<float>("<f4", "2, 2", {1, 2, 3, 4});
  const std::string keys = "shape = [2]\n";
  CHECK(arrays_error("shape = [3]\n", good) ==
        "x.npy has the shape (2, 2), but a sample of the run has the shape (3) (data.shape, data.layout)");
  CHECK(arrays_error(keys, npy<float>("<f4", "", {1})) ==
        "x.npy has the shape (), but a sample of the run has the shape (2) (data.shape, data.layout)");
  CHECK(arrays_error(keys, npy<float>("<f4", "2, 2", {1, 2, NAN, 4})) ==
        "x.npy: the value at [1, 0] is not a finite number");
  CHECK(arrays_error(keys, npy<double>("<f8", "2, 2", {1, 2, 3, -1e300})) ==
        "x.npy: the value at [1, 1] is too large");
  CHECK(arrays_error(keys, good, npy<std::int8_t>("|i1", "2,", {0, 3})) ==
        "y.npy: the value at [1] is 3, expected a label from 0 to 2");
  CHECK(arrays_error(keys, good, npy<std::int64_t>("<i8", "2,", {-1, 0})) ==
        "y.npy: the value at [0] is -1, expected a label from 0 to 2");
  CHECK(arrays_error(keys, good, npy<std::uint64_t>("<u8", "2,", {~std::uint64_t{0}, 0}))
            .ends_with("expected a label from 0 to 2"));
  CHECK(arrays_error(keys, good, npy<float>("<f4", "2,", {0, 1})) ==
        "y.npy has the shape (2) and the type float32, expected one integer for each sample");
  CHECK(arrays_error(keys, good, npy<std::int8_t>("|i1", "2, 2", {0, 1, 0, 1})) ==
        "y.npy has the shape (2, 2) and the type int8, expected one integer for each sample");
  CHECK(load_arrays(keys, good, npy<std::int8_t>("|i1", "2, 1", {0, 1})));
  CHECK(arrays_error(keys, good, npy<std::int8_t>("|i1", "3,", {0, 1, 0})) ==
        "x.npy has 2 samples, but y.npy has 3 labels");
  CHECK(arrays_error(keys, npy<float>("<f4", "0, 2", {}), npy<std::int8_t>("|i1", "0,", {}))
            .ends_with("there are no samples"));
  CHECK(arrays_error(keys, good.substr(0, good.size() - 1)) ==
        "x.npy has " + std::to_string(good.size() - 1) + " bytes, but its header describes " +
            std::to_string(good.size()));
  CHECK(arrays_error(keys, "x") == "x.npy is not an NPY file");
}

TEST_CASE("arrays: a malformed or unsupported header is refused") {
  const auto error = [](const std::string& dictionary) {
    return arrays_error("shape = [2]\n", npy_start(dictionary) + std::string(16, '\0'));
  };
  CHECK(error("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2)}") ==
        "x.npy is in big-endian byte order, which is not supported; save array.astype(\"float32\")");
  CHECK(error("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}") ==
        "x.npy is stored in Fortran order; save numpy.ascontiguousarray(array)");
  CHECK(error("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2)}") ==
        "x.npy has elements of type \"|O\"; supported are bool, int8 to int64, uint8 to uint64, float16, "
        "float32, float64");
  CHECK(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}") ==
        "x.npy has elements with fields, which are not supported");
  CHECK(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}") ==
        "x.npy has more than 2^48 elements");
  for (const char* malformed :
       {"{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'other': '<f4', 'fortran_order': False, 'shape': (2, 2)}"}) {
    CAPTURE(malformed);
    CHECK(error(malformed) == "x.npy has a malformed NPY header");
  }
  CHECK(arrays_error("shape = [2]\n", npy_start("{") + "xx") == "x.npy ends within its NPY header");
  std::string version = npy_start("{}");
  version[6] = 9;
  CHECK(arrays_error("shape = [2]\n", version) == "x.npy has version 9 of the NPY format, expected 1 to 3");
  std::string cut = npy_start("{'descr': '<f4'");
  cut[9] = 1;
  CHECK(arrays_error("shape = [2]\n", cut) == "x.npy ends within its NPY header");
}

TEST_CASE("arrays: keys that do not fit together are refused") {
  const auto error = [](const std::string& keys) {
    const auto spec = data_spec("dataset = \"arrays\"\n" + keys);
    return spec ? "no error" : spec.error().message;
  };
  CHECK(error("shape = [2]\nclass_count = 2\n") == "no error");
  CHECK(error("shape = [2]\nclasses = [\"a\", \"b\"]\n") == "no error");
  for (const auto& [keys, message] : std::vector<std::pair<std::string, std::string>>{
           {"class_count = 2\n", "shape"},
           {"shape = []\nclass_count = 2\n", "data.shape: has 0 numbers, expected 1 to 3"},
           {"shape = [1000, 1001]\nclass_count = 2\n",
            "data.shape: a sample has more than 1000000 features, which is not supported"},
           {"shape = [2]\n", "data.class_count: a data set has at least 2 classes"},
           {"shape = [2]\nclasses = [\"a\"]\n", "data.classes: a data set has at least 2 classes"},
           {"shape = [2]\nclasses = [\"a\", \"b\"]\nclass_count = 3\n",
            "data.class_count: is 3, but data.classes has 2 names"},
           {"shape = [2]\nclass_count = 2\nmean = [1, 2]\n",
            "data.mean: has 2 numbers, but a sample has 1 channels"},
           {"shape = [2]\nclass_count = 2\ninputs = \"my-y\"\n", "data.targets: the names of both arrays"}}) {
    CAPTURE(keys);
    CAPTURE(error(keys));
    CHECK(error(keys).find(message) != std::string::npos);
  }
}

TEST_CASE("arrays: a run cannot make a device read another directory's files") {
  for (const char* name : {"/../../secret/y", "../y", "a/b", "", "y\\u0000", "y z"}) {
    CAPTURE(name);
    for (const char* key : {"inputs", "targets"}) {
      const auto spec = data_spec("dataset = \"arrays\"\nshape = [2]\nclass_count = 2\n" + std::string(key) +
                                  " = \"" + name + "\"\n");
      REQUIRE_FALSE(spec);
      CHECK(spec.error().message.find("data." + std::string(key) +
                                      ": an array's name has one or more letters") != std::string::npos);
    }
  }
}

TEST_CASE("arrays: of a directory of .npy files, each file of inputs belongs to its file of labels") {
  const TemporaryDirectory directory;
  auto spec = data_spec(kArrays + "shape = [1]\n");
  REQUIRE(spec);
  spec->split.kind = SplitKind::kFile;
  spec->directory = directory.path().string();
  write_text(directory.path() / "train-1-x.npy", npy<float>("<f4", "1, 1", {1}));
  write_text(directory.path() / "train-1-y.npy", npy<std::int8_t>("|i1", "1,", {1}));
  write_text(directory.path() / "train-2-x.npy", npy<float>("<f4", "1, 1", {2}));
  write_text(directory.path() / "train-2-y.npy", npy<std::int8_t>("|i1", "1,", {2}));
  write_text(directory.path() / "test-x.npy", npy<float>("<f4", "1, 1", {3}));
  write_text(directory.path() / "test-y.npy", npy<std::int8_t>("|i1", "1,", {0}));
  const auto source = source_of(*spec);
  REQUIRE(source);
  const auto train = (*source)->load(*spec, Split::kTrain);
  CHECK(features(train) == std::vector<float>{1, 2});
  CHECK(train->labels == std::vector<Label>{1, 2});
  CHECK(features((*source)->load(*spec, Split::kTest)) == std::vector<float>{3});
  std::filesystem::remove(directory.path() / "test-y.npy");
  const auto lost = (*source)->load(*spec, Split::kTest);
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ErrorCode::kNotFound);
  CHECK(lost.error().message.find("test-y.npy") != std::string::npos);
  write_text(directory.path() / "train-z.npy", "");
  const auto other = (*source)->load(*spec, Split::kTrain);
  REQUIRE_FALSE(other);
  CHECK(other.error().message.ends_with(
      "train-z.npy: its name must end with x.npy or y.npy (data.inputs, data.targets)"));
}

}  // namespace fedge::learn
