#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "core/platform/files.h"
#include "sim/availability/availability.h"
#include "sim/availability/trace.h"

namespace fedge::sim {
namespace {

constexpr std::string_view kHeader = "client,up_seconds,down_seconds";
constexpr std::size_t kLongestLine = 256;  // bytes
constexpr std::size_t kTracePiece = std::size_t{1} << 16;

struct TraceLine {
  std::uint32_t client = 0;
  Interval interval;
};

// A field for a message: shortened, without control characters.
std::string shown(std::string_view field) {
  std::string text(field.substr(0, 40));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "\"" + text + "\"";
}

Result<Time> parse_time(std::string_view field, const char* name) {
  double value = 0;
  const auto [end, code] =
      std::from_chars(field.data(), field.data() + field.size(), value, std::chars_format::fixed);
  if (code != std::errc{} || end != field.data() + field.size())
    return invalid(std::string(name) + " " + shown(field) + " is not a number of seconds");
  if (!(value >= 0 && value <= to_seconds(kLastChange)))
    return invalid(std::string(name) + " " + shown(field) + " is not between 0 and 4e9 seconds");
  return Time(seconds(value));
}

Result<TraceLine> parse_line(std::string_view text) {
  std::array<std::string_view, 3> fields;
  std::size_t count = 0;
  for (;;) {
    const std::size_t comma = text.find(',');
    if (count < fields.size()) fields[count] = text.substr(0, comma);
    ++count;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (count != fields.size())
    return invalid("the line has " + std::to_string(count) + " fields; expected 3: " + std::string(kHeader));
  TraceLine line;
  const char* last = fields[0].data() + fields[0].size();
  const auto [end, code] = std::from_chars(fields[0].data(), last, line.client);
  if (code != std::errc{} || end != last)
    return invalid("client " + shown(fields[0]) + " is not an integer from 0 to 4294967295");
  FEDGE_TRY(up, parse_time(fields[1], "up_seconds"));
  FEDGE_TRY(down, parse_time(fields[2], "down_seconds"));
  if (up >= down)
    return invalid("down_seconds " + shown(fields[2]) + " must be greater than up_seconds " +
                   shown(fields[1]));
  line.interval = {up, down};
  return line;
}

// Parses lines and builds the table.
class Builder {
 public:
  Builder(const std::filesystem::path& path, std::size_t clients, Duration period)
      : path_(path.string()), clients_(clients), period_(period) {}

  Result<void> add(std::string_view text) {
    ++number_;
    const auto taken = take(text);
    if (!taken) return taken.error().with_prefix(path_ + ":" + std::to_string(number_) + ": ");
    return {};
  }
  bool empty() const { return number_ == 0; }

  // Also sets the starts of clients without a line.
  void finish() { starts.resize(clients_ + 1, intervals.size()); }

  std::vector<Interval> intervals;
  std::vector<std::size_t> starts;

 private:
  Result<void> take(std::string_view text) {
    if (text.size() > kLongestLine)
      return invalid("the line is longer than " + std::to_string(kLongestLine) + " bytes");
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (number_ > 1) return add_interval(text);
    if (text != kHeader)
      return invalid("the header is " + shown(text) + "; expected " + std::string(kHeader));
    return {};
  }
  Result<void> add_interval(std::string_view text) {
    FEDGE_TRY(line, parse_line(text));
    if (period_ > Duration{} && line.interval.down > Time(period_))
      return invalid("down_seconds is greater than simulation.availability.period_seconds, which is " +
                     std::to_string(to_seconds(period_)));
    if (last_ && line.client < last_->client)
      return invalid("client " + std::to_string(line.client) + " follows client " +
                     std::to_string(last_->client) + "; sort the lines by client, then by time");
    const bool goes_on = last_ && line.client == last_->client;
    if (goes_on && line.interval.up < last_->interval.down)
      return invalid(
          "up_seconds is before the end of the client's previous interval; intervals of a client must not "
          "overlap");
    const bool touches = goes_on && line.interval.up == last_->interval.down;
    last_ = line;
    if (line.client >= clients_) return {};
    if (touches) {
      intervals.back().down = line.interval.down;
      return {};
    }
    if (intervals.size() == kMaxTraceIntervals)
      return Error{ErrorCode::kResource, "the trace has more than the maximum of " +
                                             std::to_string(kMaxTraceIntervals) + " intervals"};
    starts.resize(line.client + std::size_t{1}, intervals.size());
    intervals.push_back(line.interval);
    return {};
  }

  std::string path_;
  std::size_t clients_;
  Duration period_;
  std::size_t number_ = 0;  // number of the current line
  std::optional<TraceLine> last_;
};

// Calls add() for each line of the file; the last line feed is optional.
Result<void> read_lines(const ReadOnlyFile& file, Builder& builder) {
  std::string pending;
  std::string piece;
  for (std::uint64_t offset = 0; offset < file.size(); offset += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kTracePiece, file.size() - offset)));
    FEDGE_TRY_VOID(file.read(offset, std::as_writable_bytes(std::span(piece))));
    std::string_view rest = piece;
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      pending += rest.substr(0, end);
      FEDGE_TRY_VOID(builder.add(pending));
      pending.clear();
      rest.remove_prefix(end + 1);
    }
    pending += rest;
    if (pending.size() > kLongestLine) return builder.add(pending);  // stops at once
  }
  if (!pending.empty()) FEDGE_TRY_VOID(builder.add(pending));
  if (builder.empty()) return builder.add("");
  return {};
}

}  // namespace

Result<IntervalTable> IntervalTable::load(const std::filesystem::path& path, std::size_t clients,
                                          Duration period) {
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  if (file.size() > kMaxTraceBytes)
    return Error{ErrorCode::kResource, path.string() + " has " + std::to_string(file.size()) +
                                           " bytes; a trace file may have at most 1 GiB"};
  Builder builder(path, clients, period);
  FEDGE_TRY_VOID(read_lines(file, builder));
  builder.finish();
  IntervalTable table;
  table.intervals_ = std::move(builder.intervals);
  table.starts_ = std::move(builder.starts);
  return table;
}

}  // namespace fedge::sim
