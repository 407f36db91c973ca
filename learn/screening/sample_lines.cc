#include "learn/screening/sample_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/text.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxColumns = 64;
constexpr std::size_t kShown = 40;  // bytes of a field in messages

std::string_view without_spaces(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const auto comma = line.find(',');
    fields.push_back(without_spaces(line.substr(0, comma)));
    if (comma == std::string_view::npos || fields.size() > kMaxColumns) return fields;
    line.remove_prefix(comma + 1);
  }
}

bool read_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string quoted_field(std::string_view text) {
  return "\"" + clean_text(text.substr(0, kShown), kShown) + "\"";
}

// Whether the line names columns.
bool names_columns(const std::vector<std::string_view>& fields) {
  return std::ranges::find(fields, "seconds") != fields.end();
}

}  // namespace

void SampleLines::push(std::string_view bytes, const OnSample& on_sample, const OnBroken& on_broken) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (!too_long_ && rest_.size() + piece.size() > kMaxLine) {
      too_long_ = true;
      rest_.clear();
      on_broken("a line has more than " + std::to_string(kMaxLine) + " bytes");
    }
    if (end == std::string_view::npos) {
      if (!too_long_) rest_ += piece;
      return;
    }
    if (!too_long_ && rest_.empty()) {
      take(piece, on_sample, on_broken);
    } else if (!too_long_) {
      rest_ += piece;
      take(rest_, on_sample, on_broken);
    }
    rest_.clear();
    too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
}

void SampleLines::end(const OnSample& on_sample, const OnBroken& on_broken) {
  if (!rest_.empty()) take(rest_, on_sample, on_broken);
  rest_.clear();
  too_long_ = false;
  places_.clear();
}

void SampleLines::take(std::string_view line, const OnSample& on_sample, const OnBroken& on_broken) {
  if (without_spaces(line).empty()) return;
  const auto fields = fields_of(line);
  if (names_columns(fields)) {
    if (const std::string wrong = read_names(fields); !wrong.empty()) {
      places_.clear();
      on_broken(wrong);
    }
    return;
  }
  if (places_.empty())
    return on_broken("no line has named the columns, such as \"seconds,z,label\", before the first sample");
  const std::string wrong = read_values(fields);
  wrong.empty() ? on_sample(sample_) : on_broken(wrong);
}

std::string SampleLines::read_names(const std::vector<std::string_view>& names) {
  if (names.size() > kMaxColumns)
    return "the stream has more than " + std::to_string(kMaxColumns) + " columns";
  std::vector<std::string> channels = wanted_;
  std::set<std::string_view> seen;
  const auto own_meaning = [](std::string_view name) {
    return name == "seconds" || name == "label" || name == "speed" || name == "metres";
  };
  for (const std::string_view name : names) {
    if (!seen.insert(name).second) return "the stream has two columns " + quoted_field(name);
    if (wanted_.empty() && !own_meaning(name)) channels.emplace_back(name);
  }
  for (const std::string& channel : channels)
    if (!seen.contains(channel)) return "the stream has no column " + quoted_field(channel);
  if (channels.empty()) return "the stream has no column of a sensor besides \"seconds\"";
  if (!channels_.empty() && channels.size() != channels_.size())
    return "the stream has " + std::to_string(channels.size()) + " channels, but had " +
           std::to_string(channels_.size());
  // A writer that is restarted may have them in another order.
  wanted_ = channels;
  channels_ = std::move(channels);
  places_.assign(names.size(), {});
  sample_ = {};
  sample_.channels.resize(channels_.size());
  sample_.labelled = seen.contains("label");
  sample_.placed = seen.contains("metres");
  sample_.timed = seen.contains("speed");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    const auto channel = std::ranges::find(channels_, name);
    if (channel != channels_.end())
      places_[i] = {Column::kChannel, static_cast<std::size_t>(channel - channels_.begin())};
    else
      places_[i].column = name == "seconds"  ? Column::kSeconds
                          : name == "label"  ? Column::kLabel
                          : name == "speed"  ? Column::kSpeed
                          : name == "metres" ? Column::kMetres
                                             : Column::kOther;
  }
  return "";
}

std::string SampleLines::read_values(const std::vector<std::string_view>& fields) {
  if (fields.size() != places_.size())
    return "a line has " + std::to_string(fields.size()) + " fields, expected " +
           std::to_string(places_.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Place& place = places_[i];
    if (place.column == Column::kOther) continue;
    double value = 0;
    if (!read_number(fields[i], value) || !std::isfinite(value))
      return "a field is " + quoted_field(fields[i]) + ", expected a finite number";
    const double most = place.column == Column::kSeconds ? 1e12 : kMostValue;
    if (std::abs(value) > most)
      return "a field is " + quoted_field(fields[i]) + ", expected a number of at most " + number_text(most);
    if (place.column == Column::kLabel && !(value >= 0 && value <= 255 && std::floor(value) == value))
      return "a label is " + quoted_field(fields[i]) + ", expected an integer from 0 to 255";
    switch (place.column) {
      case Column::kSeconds:
        sample_.seconds = value;
        break;
      case Column::kChannel:
        sample_.channels[place.channel] = static_cast<float>(value);
        break;
      case Column::kLabel:
        sample_.label = static_cast<std::uint8_t>(value);
        break;
      case Column::kSpeed:
        sample_.speed = static_cast<float>(std::max(value, 0.0));
        break;
      case Column::kMetres:
        sample_.metres = static_cast<float>(value);
        break;
      case Column::kOther:
        break;
    }
  }
  return "";
}

}  // namespace fedge::learn
