// AnycostPlanner: chooses for each task the width of the client's network, the compression of its update and
// the frequency of its processor, so that the task stays within limits of time and energy (AnycostFL; Li et
// al., INFOCOM 2023; reconstructed from the abstract and a third party's code, with our own gain function).
// It predicts energy by one of two laws of power (core/energy/power.h; Jallouli, Boubouh, Basmadjian,
// arXiv:2605.27601, 2026). For a width share a, a fraction b of the values sent and a frequency f:
//   T = receive + work(a) c / f + send(a, b)      E = (P(f) + P_awake) work(a) c / f + radio
// It maximises a^p b^q over the frequencies of the device and the run file's fractions b; a follows by
// bisection, because T and E never fall as a grows. Ties: less energy, then the earlier candidate. Network
// latency is not planned. Cost of a plan: frequencies x fractions x 40 x layers. Memory: the description of
// each client's device.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "aggregation/planners/layers.h"
#include "aggregation/planners/planner.h"

namespace fedge::aggregation {

struct AnycostOptions {
  double time_limit = 0;    // seconds of a task; 0: none
  double energy_limit = 0;  // joules of a task; 0: none
  PowerLaw law = PowerLaw::kAnalytical;
  PowerAnchor anchor = PowerAnchor::kLowest;
  double min_width = 0.25;
  std::vector<double> kept = {};  // fractions of the values that may be sent; empty: as the run file says
  double width_exponent = 2;      // p
  double kept_exponent = 1;       // q
  bool sort_units = true;         // by importance, in every round
};

class AnycostPlanner final : public Planner {
 public:
  // Refuses a model that is no chain of layers, and a model whose slices would have too many ranges.
  static Result<std::unique_ptr<Planner>> make(const AnycostOptions& options, const PlannerContext& context);

  void describe(ClientId client, const DevicePower& power) override;
  Coverage plan(const PlanRequest& request) override;
  Effort effort(const PlanRequest& request) override;
  // The whole model: the share depends on the client's samples.
  double share(ClientId) const override { return whole_share_; }

  // The predicted cost of a task.
  struct Cost {
    double seconds = 0;
    double joules = 0;
  };
  struct Choice {
    double width = 1;
    double kept = 0;       // fraction of the values that is sent; 0: as the run file says
    std::size_t step = 0;  // number of the frequency
    Cost cost;
    bool within = true;  // both limits are kept; false: no choice keeps them, and this exceeds them least
  };
  // The client must have described its device.
  Choice choose(ClientId client, SampleCount samples) const;

 private:
  AnycostPlanner(const AnycostOptions& options, const PlannerContext& context, std::vector<PlanLayer> layers);

  struct Device {
    DevicePower power;
    PowerModel model;
  };
  const Device& device_of(ClientId client) const;
  Cost cost(const Device& device, SampleCount samples, double width, double kept, std::size_t step) const;
  bool within(const Cost& cost) const;
  double excess(const Cost& cost) const;
  // The widest network within the limits; the narrowest one if there is none.
  Choice widest(const Device& device, SampleCount samples, double kept, std::size_t step) const;
  double gain(const Choice& choice) const;

  AnycostOptions options_;
  std::vector<double> kept_;  // the candidates for Choice::kept
  PlannerContext context_;
  std::vector<PlanLayer> layers_;
  double whole_share_;
  std::map<ClientId, Device> devices_;
};

PlannerPart read_anycost(config::Reader& section);

}  // namespace fedge::aggregation
