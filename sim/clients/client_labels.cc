#include "sim/clients/client_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/text.h"

namespace fedge::sim {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  text = trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> range_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = number_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

Result<ClientLabels> ClientLabels::parse(const std::vector<std::string>& entries) {
  ClientLabels labels;
  for (const std::string& text : entries) {
    const std::size_t colon = text.rfind(':');
    const std::string_view label = trimmed(std::string_view(text).substr(0, colon));
    const Error wrong =
        invalid("'" + clean_text(text, 80) +
                "' is no label with the numbers of its clients, such as \"ward-3: 0-49, 60\"");
    if (colon == std::string::npos || label.empty()) return wrong;
    FEDGE_TRY_VOID(check_label(label));
    Entry entry{std::string(label), {}};
    std::string_view rest = std::string_view(text).substr(colon + 1);
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      const auto range = range_in(rest.substr(0, comma));
      if (!range) return wrong;
      entry.ranges.push_back(*range);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
    labels.entries_.push_back(std::move(entry));
  }
  std::ranges::stable_sort(labels.entries_, {}, &Entry::label);
  return labels;
}

std::size_t ClientLabels::highest() const {
  std::size_t highest = 0;
  for (const Entry& entry : entries_)
    for (const auto& [first, last] : entry.ranges) highest = std::max<std::size_t>(highest, last);
  return highest;
}

std::vector<std::string> ClientLabels::of(ClientId client) const {
  std::vector<std::string> labels;
  for (const Entry& entry : entries_) {
    const bool has = std::ranges::any_of(entry.ranges, [&](const auto& range) {
      return range.first <= client.value() && client.value() <= range.second;
    });
    if (has && (labels.empty() || labels.back() != entry.label)) labels.push_back(entry.label);
  }
  return labels;
}

}  // namespace fedge::sim
