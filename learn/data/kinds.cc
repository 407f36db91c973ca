#include "learn/data/kinds.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/config/own_part.h"
#include "learn/arrays/array_source.h"
#include "learn/data/fashion_mnist.h"
#include "learn/data/sample_check.h"
#include "learn/images/cifar.h"
#include "learn/images/image_source.h"
#include "learn/tables/table_source.h"
#include "learn/text/text_data.h"

namespace fedge::learn {
namespace {

using Source = std::shared_ptr<const DataSource>;

std::vector<DatasetKind>& dataset_table() {
  constexpr DatasetTraits kText = {.text = true};
  static std::vector<DatasetKind> kinds = {
      DatasetKind{"fashion-mnist",
                  "Xiao, Rasul, Vollgraf 2017",
                  "images of clothes in 10 classes",
                  {},
                  read_fashion_mnist},
      DatasetKind{"sotu", "", "speeches of presidents of the United States", kText, read_corpus},
      DatasetKind{"moby-dick", "", "the chapters of a novel", kText, read_corpus},
      DatasetKind{"sotu+moby-dick", "", "both of the former", kText, read_corpus},
      DatasetKind{"wordnet", "", "definitions of words, by topic", kText, read_corpus},
      DatasetKind{"fortunes", "", "quotations, by topic", kText, read_corpus},
      DatasetKind{"text", "", "text files, or JSON lines of texts, of each device", kText, read_corpus},
      DatasetKind{"csv", "", "tables: CSV files with a header", {.files = true}, read_csv_source},
      DatasetKind{
          "jsonl", "", "tables: JSON lines, an object for each row", {.files = true}, read_json_source},
      DatasetKind{"arrays",
                  "",
                  "NumPy, safetensors or IDX files of inputs and labels",
                  {.files = true},
                  read_array_source},
      DatasetKind{"images",
                  "",
                  "PNG and JPEG files in a directory for each class",
                  {.files = true},
                  read_image_source},
      DatasetKind{"cifar-10",
                  "Krizhevsky 2009",
                  "binary files of small images in 10 classes",
                  {.files = true},
                  read_cifar_10},
      DatasetKind{"cifar-100", "Krizhevsky 2009", "the same in 100 classes", {.files = true}, read_cifar_100},
  };
  return kinds;
}

// The source of an own data set: what it returns is checked, and errors name it.
class OwnSource final : public DataSource {
 public:
  OwnSource(std::string part, bool text, Source source)
      : part_(std::move(part)), text_(text), source_(std::move(source)) {}

  Result<DatasetInfo> describe(const DataSpec& spec) const override {
    return named([&]() -> Result<DatasetInfo> {
      FEDGE_TRY(info, source_->describe(spec));
      FEDGE_TRY_VOID(check_info(info, text_));
      return info;
    });
  }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    FEDGE_TRY(info, describe(spec));
    return named([&]() -> Result<Dataset> {
      FEDGE_TRY(data, source_->load(spec, split));
      FEDGE_TRY_VOID(check_samples(data, info, "load()"));
      if (data.size() == 0) return invalid("load() returned no samples");
      return data;
    });
  }
  Result<SampleLabels> labels(const DataSpec& spec) const override {
    FEDGE_TRY(info, describe(spec));
    return named([&]() -> Result<SampleLabels> {
      FEDGE_TRY(labels, source_->labels(spec));
      FEDGE_TRY_VOID(check_labels(labels.values, labels.classes, info, "labels()"));
      if (labels.values.empty()) return invalid("labels() returned no labels");
      return labels;
    });
  }
  Result<Dataset> load_chosen(const DataSpec& spec, const ChooseSamples& choose) const override {
    FEDGE_TRY(info, describe(spec));
    std::vector<Label> expected;      // the labels of the chosen samples
    std::optional<Error> not_chosen;  // an error of `choose` is not one of the source
    const auto watched = [&](std::span<const Label> labels,
                             std::size_t classes) -> Result<std::vector<std::uint32_t>> {
      FEDGE_TRY_VOID(check_labels(labels, classes, info, "load_chosen()"));
      auto samples = choose(labels, classes);
      if (!samples) return *(not_chosen = samples.error());
      expected.clear();
      for (const std::uint32_t sample : *samples) expected.push_back(labels[sample]);
      return samples;
    };
    auto loaded = named([&]() -> Result<Dataset> {
      FEDGE_TRY(data, source_->load_chosen(spec, watched));
      FEDGE_TRY_VOID(check_samples(data, info, "load_chosen()"));
      if (data.labels != expected)
        return invalid("load_chosen() returned other samples than the chosen ones");
      return data;
    });
    if (not_chosen) return *not_chosen;
    return loaded;
  }
  std::vector<std::string> class_names(const DataSpec& spec) const override {
    using Names = Result<std::vector<std::string>>;
    const Names names = named([&]() -> Names { return source_->class_names(spec); });
    return names ? *names : std::vector<std::string>();
  }

 private:
  template <class Call>
  auto named(Call&& call) const -> decltype(call()) {
    try {
      auto result = config::guarded(part_, call);
      if (!result) return result.error().with_prefix("data.dataset: " + part_ + ": ");
      return result;
    } catch (const config::PartFailure& failure) {
      return invalid(std::string("data.dataset: ") + failure.what());
    }
  }

  std::string part_;
  bool text_;  // its trait
  Source source_;
};

Source read_source(const DatasetKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the data set ") + kind.name;
  try {
    Source source = config::guarded(part, [&] { return kind.read(section); });
    if (source) return std::make_shared<OwnSource>(part, kind.traits.text, std::move(source));
    section.fail("dataset", part + " is null: its function `read` returned no object");
  } catch (const config::PartFailure& failure) {
    section.fail("dataset", failure.what());
  }
  return nullptr;
}

}  // namespace

std::span<const DatasetKind> dataset_kinds() { return dataset_table(); }

const DatasetKind* find_dataset_kind(const std::string& name) {
  const auto found = std::ranges::find(dataset_table(), name, &DatasetKind::name);
  return found == dataset_table().end() ? nullptr : &*found;
}

void register_dataset(const DatasetKind& kind) {
  config::register_kind(dataset_table(), kind, "dataset", "a data set");
}

void choose_dataset_kind(config::Reader& section, DataSpec& spec) {
  const std::vector<std::string> names = config::names_of(dataset_table());
  spec.dataset = names[section.choice("dataset", names, 0, "Data set for training and testing.",
                                      config::own_program_hint("a data set", /*on_clients=*/true))];
}

void read_dataset_options(config::Reader& section, DataSpec& spec) {
  const auto read = [&](const DatasetKind& kind) {
    Source source;
    section.keys_of("dataset", kind.name, spec.dataset,
                    [&](config::Reader& keys) { source = read_source(kind, keys); });
    return source;
  };
  for (const DatasetKind& kind : dataset_table())
    if (kind.name == spec.dataset) spec.source = read(kind);
  for (const DatasetKind& kind : dataset_table())
    if (kind.name != spec.dataset) (void)read(kind);
}

Result<Source> source_of(const DataSpec& spec) {
  if (spec.source) return spec.source;
  const DatasetKind* kind = find_dataset_kind(spec.dataset);
  if (kind == nullptr) {
    std::string known;
    for (const DatasetKind& one : dataset_table())
      known += (known.empty() ? "" : ", ") + std::string(one.name);
    return Error{ErrorCode::kNotFound,
                 "data.dataset: \"" + spec.dataset + "\" is not a known data set, expected one of " + known};
  }
  static const config::Table kNoOptions;
  config::Reader section(kNoOptions, "data", "");
  Source source = read_source(*kind, section);
  if (!source) return invalid("data.dataset: " + spec.dataset + " cannot be read with its default options");
  return source;
}

}  // namespace fedge::learn
