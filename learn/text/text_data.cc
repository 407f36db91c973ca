#include "learn/text/text_data.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "learn/text/corpus.h"
#include "learn/text/vocabulary/files.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxTextGroups = 256;  // labels are bytes
constexpr std::size_t kMaxTextTokens = std::numeric_limits<std::uint32_t>::max();

// Indices of `wanted` of `count` windows, evenly spread; of all windows if `wanted` is 0.
std::vector<std::size_t> spread(std::size_t count, std::size_t wanted) {
  const std::size_t taken = wanted == 0 ? count : std::min(wanted, count);
  std::vector<std::size_t> numbers(taken);
  for (std::size_t i = 0; i < taken; ++i) numbers[i] = i * count / taken;
  return numbers;
}

Result<void> append_group(const std::vector<Token>& tokens, std::size_t wanted, Label group, Dataset& data) {
  if (tokens.size() < 2) return {};
  TextInputs& text = data.text;
  if (text.tokens.size() + tokens.size() > kMaxTextTokens)
    return Error{ErrorCode::kResource, "data.dataset: the text has more than 2^32 tokens"};
  const std::size_t context = data.shape.width;
  const std::size_t begin = text.tokens.size();
  for (const std::size_t window : spread((tokens.size() - 1 + context - 1) / context, wanted)) {
    const std::size_t start = window * context;
    const std::size_t targets = std::min(context, tokens.size() - 1 - start);
    text.windows.push_back({static_cast<std::uint32_t>(begin + start), static_cast<std::uint32_t>(targets)});
    data.labels.push_back(group);
  }
  text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
  return {};
}

// The parts of a text that are samples; views of it.
std::vector<std::string_view> units_of(std::string_view text, TextUnit unit) {
  if (unit == TextUnit::kWindow) return {text};
  std::vector<std::string_view> units;
  std::size_t begin = 0;  // of the present unit
  std::size_t end = 0;    // of its last line
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t after = std::min(text.find('\n', line), text.size());
    const bool blank = text.substr(line, after - line).find_first_not_of(" \t\r") == std::string_view::npos;
    if (end > begin && (blank || unit == TextUnit::kLine)) {
      units.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    if (!blank && end <= begin) begin = line;
    if (!blank) end = after;
    line = after + 1;
  }
  if (end > begin) units.push_back(text.substr(begin, end - begin));
  return units;
}

// Replaces the labels by classes of lengths: as many samples in each as ties allow.
void label_by_length(std::size_t classes, Dataset& data) {
  std::vector<std::uint32_t> lengths;
  for (const TextInputs::Window& window : data.text.windows) lengths.push_back(window.targets);
  std::ranges::sort(lengths);
  std::vector<std::uint32_t> least(classes);  // length of each class
  for (std::size_t c = 0; c < classes; ++c) least[c] = lengths[c * lengths.size() / classes];
  data.classes = classes;
  data.class_names.clear();
  for (std::size_t c = 0; c < classes; ++c)
    data.class_names.push_back("from " + std::to_string(least[c]) + " tokens");
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    const auto above = std::ranges::upper_bound(least, data.text.windows[i].targets);
    data.labels[i] = static_cast<Label>(std::max<std::ptrdiff_t>(above - least.begin(), 1) - 1);
  }
}

}  // namespace

Result<Tokenizer> make_tokenizer(const TokenizerSpec& spec) {
  if (spec.kind == TokenizerKind::kAscii) return Tokenizer::ascii();
  if (spec.kind == TokenizerKind::kBytes) return Tokenizer::bytes();
  if (spec.table.empty() && !spec.table_hash.empty())
    return Error{ErrorCode::kNotFound,
                 "data.tokenizer: the tokenizer with the hash " + spec.table_hash + " is not here"};
  auto made =
      spec.kind == TokenizerKind::kBpe ? Tokenizer::bpe(spec.table) : Tokenizer::published(spec.table);
  if (!made) return Error{made.error().code, "data.tokenizer: " + made.error().message};
  return std::move(*made);
}

Result<std::string> read_tokenizer_table(TokenizerKind kind, const std::filesystem::path& path,
                                         std::size_t max_bytes) {
  if (kind != TokenizerKind::kVocabulary) return read_file(path, max_bytes);
  FEDGE_TRY(vocabulary, read_vocabulary_file(path));
  return vocabulary_text(vocabulary);
}

Result<Dataset> load_text(const DataSpec& spec, TextSplit split) {
  FEDGE_TRY(tokenizer, make_tokenizer(spec.tokenizer));
  FEDGE_TRY(groups, load_corpus(spec.dataset, spec.directory));
  if (groups.empty()) return invalid("data.directory: there is no text in the files of " + spec.dataset);
  if (groups.size() > kMaxTextGroups)
    return invalid("data.directory: the text has " + std::to_string(groups.size()) +
                   " groups; at most 256 are allowed");
  Dataset data{.shape = {1, spec.context, 1, true}, .classes = groups.size(), .floats = {}, .labels = {}};
  data.text.vocabulary = tokenizer.vocabulary();
  for (std::size_t token = 0; token < tokenizer.vocabulary(); ++token)
    data.text.bytes.push_back(static_cast<std::uint16_t>(tokenizer.bytes(static_cast<Token>(token))));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool train = split == TextSplit::kTrain;
    const std::string& text = train ? groups[g].train : groups[g].held_out;
    data.class_names.push_back(groups[g].name);
    const std::vector<std::string_view> units = units_of(text, spec.unit);
    for (const std::size_t i :
         spread(units.size(), train || spec.unit == TextUnit::kWindow ? 0 : spec.test_windows))
      FEDGE_TRY_VOID(append_group(tokenizer.encode(units[i]),
                                  train || spec.unit != TextUnit::kWindow ? 0 : spec.test_windows,
                                  static_cast<Label>(g), data));
  }
  if (data.size() == 0)
    return invalid(split == TextSplit::kTrain
                       ? "data.directory: no training text remains in the files of " + spec.dataset
                       : "data.directory: the text is too short to hold out a part of it for testing");
  if (spec.length_classes > 0) label_by_length(spec.length_classes, data);
  return data;
}

namespace {

class Corpora final : public DataSource {
 public:
  Result<DatasetInfo> describe(const DataSpec& spec) const override {
    FEDGE_TRY(tokenizer, make_tokenizer(spec.tokenizer));
    return DatasetInfo{{1, spec.context, 1, true}, 0, tokenizer.vocabulary(), {}};
  }
  Result<Dataset> load(const DataSpec& spec, Split split) const override {
    return load_text(spec, split == Split::kTrain ? TextSplit::kTrain : TextSplit::kHeldOut);
  }
  std::vector<std::string> class_names(const DataSpec& spec) const override {
    std::vector<std::string> names;
    if (auto groups = load_corpus(spec.dataset, spec.directory))
      for (TextGroup& group : *groups) names.push_back(std::move(group.name));
    return names;
  }
};

}  // namespace

std::shared_ptr<const DataSource> read_corpus(config::Reader&) { return std::make_shared<Corpora>(); }

std::vector<std::uint32_t> spread_windows(const Dataset& data, std::span<const std::uint32_t> windows,
                                          std::size_t wanted) {
  std::vector<std::uint32_t> chosen;
  for (std::size_t begin = 0, end = 0; begin < windows.size(); begin = end) {
    while (end < windows.size() && data.labels[windows[end]] == data.labels[windows[begin]]) ++end;
    for (const std::size_t i : spread(end - begin, wanted)) chosen.push_back(windows[begin + i]);
  }
  return chosen;
}

Dataset select_windows(const Dataset& data, std::span<const std::uint32_t> samples) {
  Dataset part{.shape = data.shape, .classes = data.classes, .floats = {}, .labels = {}};
  part.class_names = data.class_names;
  part.text.vocabulary = data.text.vocabulary;
  part.text.bytes = data.text.bytes;
  for (const std::uint32_t sample : samples) {
    const TextInputs::Window& window = data.text.windows[sample];
    const auto from = data.text.tokens.begin() + static_cast<std::ptrdiff_t>(window.start);
    part.text.windows.push_back({static_cast<std::uint32_t>(part.text.tokens.size()), window.targets});
    part.text.tokens.insert(part.text.tokens.end(), from,
                            from + static_cast<std::ptrdiff_t>(window.targets) + 1);
    part.labels.push_back(data.labels[sample]);
  }
  return part;
}

}  // namespace fedge::learn
