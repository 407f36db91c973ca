// ComposedLoss: the sum of the losses of several steps on a plan's window (pld_plan.h), and its curve
// delta(epsilon). pld.h explains why the result is never below the true curve. A step's spectrum does not
// depend on how often the step is taken: it is computed once, and a composition multiplies powers of spectra.
// Value types; thread-safe. Memory: 8 bytes per point of the window for each spectrum, some 40 for a
// composition.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "privacy/differential/accounting/loss/pld_plan.h"

namespace fedge::privacy {

// The Fourier transform of the tilted losses of one step.
struct StepSpectrum {
  std::vector<std::complex<double>> polar;  // logarithm of the absolute value and angle of each entry
  double log_sum = 0;                       // log E[e^(tilt L)]
  double log_steeper = 0;                   // the same for the plan's steeper tilt
  double log_finite = 0;                    // logarithm of the mass with a finite loss
};
// `tail`: mass that may lie outside the grid on each side.
StepSpectrum make_spectrum(const NoisyStep& step, Direction direction, double tail, const Plan& plan);

class ComposedLoss {
 public:
  struct Factor {
    const StepSpectrum& spectrum;
    double count = 1;
  };
  // Multiplies the spectra, which must have been made for this plan.
  ComposedLoss(std::span<const Factor> factors, const Plan& plan);

  double delta(double epsilon) const;
  // The least epsilon >= 0 on the window with at most this delta.
  double epsilon(double most) const;
  // Whether `epsilon`, the result of epsilon(most), is as precise as the plan's grid: it does not lie at an
  // end of the window, and rounding has no effect on it.
  bool is_tight(double epsilon, double most) const;

 private:
  double loss_at(std::size_t i) const;
  double delta_in_cell(std::size_t i, double epsilon) const;
  void raise(const StepSpectrum& step, double count);
  void finish(double count);
  void sum_up(const std::vector<double>& masses);

  Plan plan_;
  std::int64_t first_;                          // grid index of the window's first point
  std::vector<std::complex<double>> spectrum_;  // form: see StepSpectrum::polar
  std::vector<double> log_error_;               // relative error of each entry
  double log_sum_ = 0;
  double log_steeper_ = 0;
  double log_finite_ = 0;
  double noise_ = 0;  // bound on the rounding error of a mass
  double infinite_ = 0;
  double slack_ = 1;
  double center_ = 0;
  double log_scale_ = 0;
  std::size_t begin_ = 0;  // first point whose loss is summed
  std::vector<double> above_;
  std::vector<double> above_neighbour_;
};

}  // namespace fedge::privacy
