// EnergyFigures: the energy that devices consumed in a round, in joules, as metrics of the round. A
// simulation knows it of all devices, also of those that dropped out; a coordinator knows what its clients
// report.
#pragma once

#include <cmath>
#include <limits>

#include "core/energy/reported_energy.h"

namespace fedge::server {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct EnergyFigures {
  // In a simulation:
  double joules = kNotMeasured;               // of all devices
  double computing_joules = kNotMeasured;     // dynamic energy of processors
  double radio_joules = kNotMeasured;         // of sending and receiving
  double awake_joules = kNotMeasured;         // of everything else while devices work
  double task_joules = kNotMeasured;          // mean over the training tasks whose updates arrived
  double largest_task_joules = kNotMeasured;  // of these tasks
  double fairness = kNotMeasured;             // Jain's index over devices, since the start of the run
  double battery_mean = kNotMeasured;         // levels at the end of the round, 0 to 1
  double battery_lowest = kNotMeasured;
  double without_power = kNotMeasured;  // devices whose battery is empty
  // By clients, with accepted updates:
  double reported_joules = kNotMeasured;
  double reporting_clients = kNotMeasured;

  // Adds what clients report in a track phase.
  void add(const ReportedEnergy& reported) {
    if (reported.clients == 0) return;
    const double before = std::isnan(reported_joules) ? 0 : reported_joules;
    const double clients = std::isnan(reporting_clients) ? 0 : reporting_clients;
    reported_joules = before + reported.joules;
    reporting_clients = clients + static_cast<double>(reported.clients);
  }
  // Returns the energy of all devices if it is known, else what clients report.
  double shown() const { return std::isnan(joules) ? reported_joules : joules; }
  bool measured() const { return !std::isnan(joules) || !std::isnan(reported_joules); }
};

// Calls visit(key, value) for each, in the order of the files that contain them.
template <class Figures, class Visit>
void for_each_energy_metric(Figures&& energy, const Visit& visit) {
  visit("energy_joules", energy.joules);
  visit("energy_computing_joules", energy.computing_joules);
  visit("energy_radio_joules", energy.radio_joules);
  visit("energy_awake_joules", energy.awake_joules);
  visit("energy_task_joules", energy.task_joules);
  visit("energy_largest_task_joules", energy.largest_task_joules);
  visit("energy_fairness", energy.fairness);
  visit("battery_mean", energy.battery_mean);
  visit("battery_lowest", energy.battery_lowest);
  visit("devices_without_power", energy.without_power);
  visit("energy_reported_joules", energy.reported_joules);
  visit("energy_reporting_clients", energy.reporting_clients);
}

}  // namespace fedge::server
