#include "sim/energy/energy_file.h"

#include <cstdint>
#include <string>
#include <system_error>

#include "core/platform/files.h"
#include "core/text.h"
#include "server/report/metrics_csv.h"

namespace fedge::sim {
namespace {

constexpr const char* kName = "energy.csv";

}  // namespace

Result<void> remove_energy_file(const std::filesystem::path& results) {
  std::error_code error;
  std::filesystem::remove(results / kName, error);
  if (error) return system_error("cannot remove", results / kName, error.value());
  return {};
}

Result<void> write_energy_file(const std::filesystem::path& results, const Devices& devices,
                               const EnergyMeter& energy) {
  std::string text =
      "client,cluster,lowest_hertz,highest_hertz,watts_lowest,watts_highest,send_bytes_per_second,"
      "receive_bytes_per_second,joules\r\n";
  const auto& consumed = energy.ledger().devices();
  for (std::uint32_t client = 0; client < consumed.size(); ++client) {
    const auto power = devices.power(ClientId(client));
    text +=
        std::to_string(client) + "," + server::csv_field(devices.energy()->cluster(ClientId(client)).name);
    for (const double value :
         {power->hertz.front(), power->hertz.back(), power->watts_lowest, power->watts_highest,
          power->send_bytes_per_second, power->receive_bytes_per_second, joules_of(consumed[client])})
      text += "," + number_text(value);
    text += "\r\n";
  }
  return write_file_atomic(results / kName, text, 0644);
}

}  // namespace fedge::sim
