#include "learn/data/kinds.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/config/own_part.h"
#include "learn/data/fashion_mnist.h"
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
      DatasetKind{"text", "", "text files of each device", kText, read_corpus},
  };
  return kinds;
}

// Checks what the callers of an own source rely on.
Result<void> check_samples(const Dataset& data, const DatasetInfo& info) {
  if (data.shape != info.shape || data.outputs() != info.outputs)
    return invalid("load() returned samples of another shape than describe()");
  if (data.size() == 0) return invalid("load() returned no samples");
  for (const std::uint8_t label : data.labels)
    if (label >= data.classes)
      return invalid("load() returned the label " + std::to_string(label) + ", but the data set has " +
                     std::to_string(data.classes) + " classes");
  if (data.shape.tokens) {
    if (data.text.windows.size() == data.size()) return {};
    return invalid("load() returned " + std::to_string(data.text.windows.size()) + " windows and " +
                   std::to_string(data.size()) + " labels");
  }
  const bool bytes = !data.packed.bytes.empty();
  const std::size_t values = bytes ? data.packed.bytes.size() : data.floats.size();
  if (values != data.size() * data.shape.size())
    return invalid("load() returned " + std::to_string(values) + " values for " +
                   std::to_string(data.size()) + " samples of " + std::to_string(data.shape.size()));
  if (!bytes && !std::ranges::all_of(data.floats.span(), [](float value) { return std::isfinite(value); }))
    return invalid("load() returned a value that is not finite");
  return {};
}

// The source of an own data set: errors name it.
class OwnSource final : public DataSource {
 public:
  OwnSource(std::string part, Source source) : part_(std::move(part)), source_(std::move(source)) {}

  Result<DatasetInfo> describe(const DataSpec& spec) const override {
    return named([&] { return source_->describe(spec); });
  }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    FEDGE_TRY(info, describe(spec));
    return named([&]() -> Result<Dataset> {
      FEDGE_TRY(data, source_->load(spec, split));
      FEDGE_TRY_VOID(check_samples(data, info));
      return data;
    });
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
  Source source_;
};

Source read_source(const DatasetKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the data set ") + kind.name;
  try {
    Source source = config::guarded(part, [&] { return kind.read(section); });
    if (source) return std::make_shared<OwnSource>(part, std::move(source));
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

void read_dataset_kind(config::Reader& section, DataSpec& spec) {
  const std::vector<std::string> names = config::names_of(dataset_table());
  const std::size_t chosen = section.choice("dataset", names, 0, "Data set for training and testing.",
                                            config::own_program_hint("a data set", /*on_clients=*/true));
  spec.dataset = names[chosen];
  const auto read = [&](std::size_t i) {
    Source source;
    section.keys_of("dataset", names[i], spec.dataset,
                    [&](config::Reader& keys) { source = read_source(dataset_table()[i], keys); });
    return source;
  };
  spec.source = read(chosen);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i != chosen) (void)read(i);
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
