#include "server/report/event_file.h"

#include <bit>
#include <boost/crc.hpp>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "core/platform/files.h"
#include "server/report/metrics_csv.h"

namespace fedge::server {
namespace {

// Parts of protobuf messages. Fields of Event: wall_time = 1, step = 2, file_version = 3, summary = 5; of
// Summary: value = 1; of Summary.Value: tag = 1, simple_value = 2.
enum class Wire : std::uint8_t { kVarint = 0, kDouble = 1, kBytes = 2, kFloat = 5 };

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string field(unsigned number, Wire wire, const std::string& value) {
  return static_cast<char>(number << 3 | static_cast<unsigned>(wire)) + value;
}

std::string field(unsigned number, std::string_view bytes) {
  return field(number, Wire::kBytes, varint(bytes.size()) + std::string(bytes));
}

std::string scalar(const std::string& tag, double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return field(1, field(1, tag) + field(2, Wire::kFloat, little_endian(bits)));
}

std::string event(double wall_time, std::uint64_t step) {
  return field(1, Wire::kDouble, little_endian(std::bit_cast<std::uint64_t>(wall_time))) +
         field(2, Wire::kVarint, varint(step));
}

// CRC-32C, rotated and offset as TFRecord demands.
std::string masked_checksum(const std::string& bytes) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return little_endian(std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xa282ead8U);
}

const char* group_of(const std::string& name) {
  constexpr std::pair<std::string_view, const char*> kGroups[] = {
      {"class_", "per_class"},    {"evaluation_", "evaluation"}, {"rank_", "ranks"},
      {"bytes_", "traffic"},      {"virtual_", "time"},          {"wall_", "time"},
      {"clients_", "clients"},    {"participation_", "clients"}, {"covered_", "clients"},
      {"label_", "clients"},      {"epsilon", "privacy"},        {"clipping_", "privacy"},
      {"parameters_", "privacy"}, {"energy_", "energy"},         {"battery_", "energy"},
      {"devices_", "energy"}};
  for (const auto& [beginning, group] : kGroups)
    if (name.starts_with(beginning)) return group;
  return "model";
}

}  // namespace

Result<EventFile> EventFile::create(const std::filesystem::path& directory, double started) {
  const auto path = directory / kEventFileName;
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return system_error("cannot write", path, errno);
  EventFile events(path, started, file);
  FEDGE_TRY_VOID(events.write(event(started, 0) + field(3, "brain.Event:2")));
  return events;
}

Result<void> EventFile::add(const RoundMetrics& metrics) {
  std::string summary;
  for (const NamedNumber& number : named_numbers(metrics, columns_of({&metrics, 1}))) {
    const auto* whole = std::get_if<std::uint64_t>(&number.value);
    const double value = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(number.value);
    if (!std::isnan(value)) summary += scalar(std::string(group_of(number.name)) + "/" + number.name, value);
  }
  return write(event(started_ + metrics.wall_seconds, metrics.round) + field(5, summary));
}

Result<void> EventFile::write(const std::string& event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  const std::string record = length + masked_checksum(length) + event + masked_checksum(event);
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() &&
      std::fflush(file_.get()) == 0)
    return {};
  return system_error("cannot write", path_, errno);
}

}  // namespace fedge::server
