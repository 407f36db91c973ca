#include "learn/data/dataset.h"

#include <cmath>
#include <set>

#include "learn/data/validation.h"
#include "learn/task.h"
#include "tests/support/skip.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;
using learn::test::gzip;
using learn::test::idx;

namespace {

constexpr std::size_t kPixels = 28 * 28;

struct TrainTest {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

// Loads both splits, or returns the first error.
Result<TrainTest> load(const DataSpec& spec) {
  FEDGE_TRY(train, load_train(spec, Rng(7)));
  FEDGE_TRY(test, load_test(spec));
  return TrainTest{train, test};
}

std::vector<float> input_of(const Dataset& data, std::size_t sample) {
  std::vector<float> input(data.shape.size());
  data.read_inputs(sample, input);
  return input;
}

// Every pixel of sample i has the shade i.
learn::test::Bytes images(const learn::test::Bytes& shades) {
  learn::test::Bytes pixels;
  for (const auto shade : shades) pixels.insert(pixels.end(), kPixels, shade);
  return idx({static_cast<std::uint32_t>(shades.size()), 28, 28}, pixels);
}

learn::test::Bytes labels(const learn::test::Bytes& values) {
  return idx({static_cast<std::uint32_t>(values.size())}, values);
}

// Four training and two test samples, compressed.
struct Fixture {
  learn::test::TemporaryDirectory directory;
  DataSpec spec;

  Fixture() {
    directory.write("train-images-idx3-ubyte.gz", gzip(images({0, 255, 51, 102})));
    directory.write("train-labels-idx1-ubyte.gz", gzip(labels({9, 0, 3, 3})));
    directory.write("t10k-images-idx3-ubyte.gz", gzip(images({204, 1})));
    directory.write("t10k-labels-idx1-ubyte.gz", gzip(labels({7, 8})));
    spec.directory = directory.path().string();
  }
};

void check_fails(const DataSpec& spec, ErrorCode code, const std::vector<std::string>& words) {
  const auto result = load(spec);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == code);
  for (const auto& word : words)
    CHECK_MESSAGE(result.error().message.find(word) != std::string::npos, result.error().message);
}

// Loads Fashion-MNIST; if it is missing, the test case is skipped.
std::optional<TrainTest> fashion_mnist() {
  auto data = load(DataSpec{});
  if (data) return std::move(data).value();
  REQUIRE(data.error().code == ErrorCode::kNotFound);
  fedge::test::skip("Fashion-MNIST not found", "dataset-fashion-mnist");
  return std::nullopt;
}

// Training sample i has the shade i; 100 samples with label 0, 60 with 1, 26 with 2. Test samples have the
// shade 255.
struct Skewed {
  learn::test::TemporaryDirectory directory;
  TaskSpec spec;

  Skewed() {
    learn::test::Bytes shades(186), values(186);
    for (std::size_t i = 0; i < shades.size(); ++i) {
      shades[i] = static_cast<std::uint8_t>(i);
      values[i] = i % 7 == 0 && i < 182 ? 2 : 9;
    }
    for (std::size_t i = 0, seen = 0; i < values.size(); ++i)
      if (values[i] == 9) values[i] = seen++ % 8 < 3 ? 1 : 0;
    directory.write("train-images-idx3-ubyte.gz", gzip(images(shades)));
    directory.write("train-labels-idx1-ubyte.gz", gzip(labels(values)));
    directory.write("t10k-images-idx3-ubyte.gz", gzip(images({255, 255})));
    directory.write("t10k-labels-idx1-ubyte.gz", gzip(labels({0, 1})));
    spec.data.directory = directory.path().string();
    spec.data.partition.clients = 3;
    spec.data.validation = 0.1;
    spec.model.kind = "softmax";
  }
};

// The shade of a sample whose pixels all have the same one.
int shade_of(const Dataset& data, std::size_t sample) {
  return static_cast<int>(std::lround((input_of(data, sample)[0] * 0.3530 + 0.2860) * 255));
}

std::vector<int> shades_of(const Dataset& data) {
  std::vector<int> shades(data.size());
  for (std::size_t i = 0; i < shades.size(); ++i) shades[i] = shade_of(data, i);
  return shades;
}

}  // namespace

TEST_CASE("dataset: pixels are normalised to (x / 255 - 0.2860) / 0.3530, labels kept") {
  const Fixture fixture;
  const auto data = load(fixture.spec);
  REQUIRE(data.has_value());
  CHECK(data->train->shape.height == 28);
  CHECK(data->train->shape.width == 28);
  CHECK(data->train->shape.channels == 1);
  CHECK(data->train->classes == 10);
  CHECK(data->train->labels == std::vector<Label>{9, 0, 3, 3});
  CHECK(data->test->labels == std::vector<Label>{7, 8});
  // By hand: -0.2860/0.3530, 0.7140/0.3530, (0.2 - 0.2860)/0.3530, (0.4 - 0.2860)/0.3530.
  const double expected[] = {-0.8101983, 2.0226629, -0.2436261, 0.3229462};
  for (std::size_t sample = 0; sample < 4; ++sample) {
    const auto input = input_of(*data->train, sample);
    REQUIRE(input.size() == kPixels);
    for (const float value : input) REQUIRE(value == doctest::Approx(expected[sample]).epsilon(1e-6));
  }
  CHECK(input_of(*data->test, 0)[783] ==
        doctest::Approx(1.4560907).epsilon(1e-6));  // (0.8 - 0.2860) / 0.3530
}

TEST_CASE("dataset: unpacked files do as well") {
  const Fixture fixture;
  std::filesystem::remove(fixture.directory.path() / "train-images-idx3-ubyte.gz");
  fixture.directory.write("train-images-idx3-ubyte", images({0, 255, 51, 102}));
  const auto data = load(fixture.spec);
  REQUIRE(data.has_value());
  CHECK(input_of(*data->train, 1)[0] == doctest::Approx(2.0226629).epsilon(1e-6));
}

TEST_CASE("dataset: a missing file names its path, the package and the key to set") {
  const Fixture fixture;
  const auto path = fixture.directory.path() / "t10k-labels-idx1-ubyte.gz";
  std::filesystem::remove(path);
  check_fails(fixture.spec, ErrorCode::kNotFound,
              {path.string(), "apt-get install dataset-fashion-mnist", "data.directory"});
}

TEST_CASE("dataset: damaged files are named with what does not match") {
  const Fixture fixture;
  SUBCASE("more images than labels") {
    fixture.directory.write("train-images-idx3-ubyte.gz", gzip(images({0, 1, 2, 3, 4})));
    check_fails(fixture.spec, ErrorCode::kCorrupt,
                {"train-images-idx3-ubyte.gz contains 5 images", "contains 4 labels"});
  }
  SUBCASE("a label that is no class") {
    fixture.directory.write("t10k-labels-idx1-ubyte.gz", gzip(labels({7, 10})));
    check_fails(fixture.spec, ErrorCode::kCorrupt, {"t10k-labels", "label 10 of sample 1", "0 to 9"});
  }
  SUBCASE("images of another size") {
    fixture.directory.write("t10k-images-idx3-ubyte.gz", gzip(idx({2, 1, 2}, {1, 2, 3, 4})));
    check_fails(fixture.spec, ErrorCode::kCorrupt, {"t10k-images", "images are 1x2, expected 28x28"});
  }
  SUBCASE("a flipped bit of the checksum") {
    auto packed = gzip(images({0, 255, 51, 102}));
    packed[packed.size() - 5] ^= 0x80;
    fixture.directory.write("train-images-idx3-ubyte.gz", packed);
    check_fails(fixture.spec, ErrorCode::kCorrupt, {"train-images-idx3-ubyte.gz", "CRC-32"});
  }
}

TEST_CASE("dataset: an unknown name is refused and the known one needs no files to be described") {
  DataSpec spec;
  const auto info = describe(spec);
  REQUIRE(info.has_value());
  CHECK(info->shape.size() == 784);
  CHECK(info->classes == 10);
  REQUIRE(info->class_names.size() == 10);
  CHECK(info->class_names[9] == "Ankle boot");
  spec.dataset = "imagenet";
  CHECK(describe(spec).error().message.find(
            "\"imagenet\" is not a known data set, expected one of fashion-mnist, sotu, moby-dick, "
            "sotu+moby-dick, wordnet, fortunes, text") != std::string::npos);
}

TEST_CASE("dataset: one client's part is its samples of the whole, in the partition's order") {
  Fixture fixture;
  fixture.spec.partition.clients = 2;
  const auto whole = load(fixture.spec);
  const Rng rng(5);
  const auto parts = partition(fixture.spec.partition, whole->train->labels, 10, rng);
  REQUIRE(parts.has_value());
  for (std::size_t client = 0; client < 2; ++client) {
    const auto part = load_part(fixture.spec, client, rng);
    REQUIRE(part.has_value());
    REQUIRE((*part)->size() == parts->of(client).size());
    for (std::size_t i = 0; i < (*part)->size(); ++i) {
      const std::uint32_t sample = parts->of(client)[i];
      CHECK((*part)->labels[i] == whole->train->labels[sample]);
      CHECK(input_of(**part, i)[400] == input_of(*whole->train, sample)[400]);
    }
  }
}

TEST_CASE("dataset: no client has a validation sample, and together they are the training set, each once") {
  Skewed fixture;
  for (const PartitionKind kind :
       {PartitionKind::kIid, PartitionKind::kDirichlet, PartitionKind::kShards, PartitionKind::kNatural}) {
    CAPTURE(name_of(kind));
    fixture.spec.data.partition.kind = kind;
    const auto validation = load_evaluation(fixture.spec.data, Rng(5));
    const auto whole = Task::build(fixture.spec, 5);
    const auto sizes = partition_sizes(fixture.spec.data, Rng(5));
    REQUIRE((validation && whole && sizes));
    std::multiset<int> all;
    for (const int shade : shades_of(**validation)) all.insert(shade);
    for (const std::uint32_t client : {0U, 1U, 2U}) {
      const auto part = Task::build_for(fixture.spec, 5, ClientId(client));
      REQUIRE(part);
      std::vector<int> simulated;
      for (const std::uint32_t sample : (*whole)->samples_of(ClientId(client)))
        simulated.push_back(shade_of((*whole)->data(), sample));
      const std::vector<int> own = shades_of((*part)->data());
      CHECK(own == simulated);
      CHECK(own.size() == (*sizes)[client]);
      all.insert(own.begin(), own.end());
    }
    CHECK(all.size() == 186);
    CHECK(std::set<int>(all.begin(), all.end()).size() == 186);
    CHECK(*all.rbegin() == 185);
  }
}

TEST_CASE("dataset: validation samples are the rounded fraction of each label, drawn by the seed") {
  Skewed fixture;
  const auto train = load_train(fixture.spec.data, Rng(7));
  const auto validation = load_evaluation(fixture.spec.data, Rng(5));
  REQUIRE((train && validation));
  std::vector<long> counts(10), chosen(10), expected(10);
  for (const auto label : (*train)->labels) ++counts[label];
  for (const auto label : (*validation)->labels) ++chosen[label];
  CHECK(counts == std::vector<long>{100, 60, 26, 0, 0, 0, 0, 0, 0, 0});
  CHECK(chosen == std::vector<long>{10, 6, 3, 0, 0, 0, 0, 0, 0, 0});
  CHECK(shades_of(**validation) == shades_of(**load_evaluation(fixture.spec.data, Rng(5))));
  CHECK(shades_of(**validation) != shades_of(**load_evaluation(fixture.spec.data, Rng(6))));
  fixture.spec.data.validation = 0;
  CHECK(shades_of(**load_evaluation(fixture.spec.data, Rng(5))) == std::vector<int>{255, 255});
}

TEST_CASE("dataset: without validation samples, the partition is that of all samples") {
  Skewed fixture;
  fixture.spec.data.validation = 0;
  fixture.spec.data.partition.kind = PartitionKind::kDirichlet;
  const auto train = load_train(fixture.spec.data, Rng(7));
  REQUIRE(train);
  const auto plain = partition(fixture.spec.data.partition, (*train)->labels, 10, Rng(5));
  const auto parts = partition_for_clients(fixture.spec.data, (*train)->labels, 10, Rng(5));
  REQUIRE((plain && parts));
  for (std::size_t client = 0; client < 3; ++client)
    CHECK(std::ranges::equal(plain->of(client), parts->of(client)));
}

TEST_CASE("dataset: a validation split without samples, or one that leaves too few, names the key") {
  Skewed fixture;
  fixture.spec.data.validation = 0.001;
  for (const auto& error :
       {Task::build(fixture.spec, 5).error(), load_evaluation(fixture.spec.data, Rng(5)).error(),
        Task::build_for(fixture.spec, 5, ClientId(0)).error()})
    CHECK(
        error.message ==
        "data.validation: 0.001 of the 186 training samples rounds to 0 samples of each label; raise it, or "
        "set it to 0");
  fixture.spec.data.validation = 0.5;
  fixture.spec.data.partition.clients = 100;
  CHECK(Task::build(fixture.spec, 5)
            .error()
            .message.find("data.partition.clients: 100 clients cannot share 93 samples") !=
        std::string::npos);
}

TEST_CASE("dataset: Fashion-MNIST is the published one") {
  const auto data = fashion_mnist();
  if (!data) return;
  REQUIRE(data->train->size() == 60000);
  REQUIRE(data->test->size() == 10000);
  std::vector<int> train(10), test(10);
  for (const auto label : data->train->labels) ++train[label];
  for (const auto label : data->test->labels) ++test[label];
  CHECK(train == std::vector<int>(10, 6000));
  CHECK(test == std::vector<int>(10, 1000));
  // The first labels, which many tutorials print.
  const std::vector<Label> first = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5};
  CHECK(std::vector<Label>(data->train->labels.begin(), data->train->labels.begin() + 10) == first);
  // The training pixels have mean 0.2860 and deviation 0.3530: normalised 0 and 1.
  double sum = 0;
  double squares = 0;
  for (const float value : data->train->floats.span()) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const double mean = sum / (60000.0 * 784);
  CHECK(mean * 0.3530 + 0.2860 == doctest::Approx(72.940 / 255).epsilon(1e-4));
  CHECK(std::sqrt(squares / (60000.0 * 784) - mean * mean) == doctest::Approx(1.0).epsilon(1e-3));
}
