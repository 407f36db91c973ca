// ComposedLoss: what steps' losses add up to, on the window of a plan (pld_plan.h), and the curve
// delta(epsilon) of that; pld.h says what is done to never be below the true one. What a step contributes
// does not depend on how often it is taken: its spectrum is computed once, and a composition is powers of
// spectra. Values; any thread. Memory: 8 bytes a point of the window for each step's spectrum, some 40 for a
// composition.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "privacy/differential/accounting/loss/pld_plan.h"

namespace fedge::privacy {

// The tilted losses of one step, transformed.
struct StepSpectrum {
  std::vector<std::complex<double>> polar;  // of each entry the logarithm of its size, and its angle
  double log_sum = 0;                       // log E[e^(tilt L)]
  double log_steeper = 0;                   // the same for the plan's other tilt
  double log_finite = 0;                    // of the mass that is not lost altogether
};
// `tail`: what counts as infinite on either side.
StepSpectrum make_spectrum(const NoisyStep& step, Direction direction, double tail, const Plan& plan);

class ComposedLoss {
 public:
  struct Factor {
    const StepSpectrum& spectrum;
    double count = 1;
  };
  // All of spectra that were made for this plan.
  ComposedLoss(std::span<const Factor> factors, const Plan& plan);

  double delta(double epsilon) const;
  // Least epsilon >= 0 on the window that has at most this delta.
  double epsilon(double most) const;
  // Whether epsilon(most), which was `epsilon`, is as near to the true one as the plan's grid is: it is no
  // end of the window, and rounding is no part of it.
  bool is_tight(double epsilon, double most) const;

 private:
  double loss_at(std::size_t i) const;
  double delta_in_cell(std::size_t i, double epsilon) const;
  void raise(const StepSpectrum& step, double count);
  void finish(double count);
  void sum_up(const std::vector<double>& masses);

  Plan plan_;
  std::int64_t first_;                          // grid index of the window's first point
  std::vector<std::complex<double>> spectrum_;  // of the tilted distributions: as StepSpectrum::polar
  std::vector<double> log_error_;               // of each entry, relative to it
  double log_sum_ = 0;
  double log_steeper_ = 0;
  double log_finite_ = 0;
  double noise_ = 0;  // bound on what rounding did to a mass
  double infinite_ = 0;
  double slack_ = 1;
  double center_ = 0;
  double log_scale_ = 0;
  std::size_t begin_ = 0;  // losses from here on are summed up
  std::vector<double> above_;
  std::vector<double> above_neighbour_;
};

}  // namespace fedge::privacy
