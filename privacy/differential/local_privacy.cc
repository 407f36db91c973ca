#include "privacy/differential/local_privacy.h"

#include <cmath>

#include "privacy/differential/accounting/accountant.h"

namespace fedge::privacy {
namespace {

constexpr const char* kLocalSection = "local_privacy";

}  // namespace

config::Table to_table(const LocalPrivacySpec& spec) {
  config::Table table;
  const auto put = [&](const char* key, auto value) {
    table.emplace(key, config::Value{value, kLocalSection});
  };
  put("clipping_norm", spec.clipping_norm);
  put("noise_multiplier", spec.noise_multiplier);
  put("fraction_bits", std::int64_t{spec.fraction_bits});
  put("max_participations", std::int64_t{spec.max_participations});
  put("delta", spec.delta);
  return table;
}

std::optional<LocalPrivacySpec> read_local_privacy(config::Reader& root) {
  if (!root.has(kLocalSection)) return std::nullopt;
  LocalPrivacySpec spec;
  config::Reader section = root.section(kLocalSection);
  spec.clipping_norm = section.number("clipping_norm", {}, {1e-9, 1e9}, "");
  spec.noise_multiplier = section.number("noise_multiplier", {}, {1e-9, 1e9}, "");
  spec.fraction_bits = static_cast<int>(section.integer("fraction_bits", {}, {-64, 64}, ""));
  spec.max_participations =
      static_cast<std::uint32_t>(section.integer("max_participations", {}, {1, 1'000'000}, ""));
  spec.delta = section.number("delta", {}, {1e-15, 0.1}, "");
  root.adopt(section);
  return spec;
}

Result<double> gaussian_epsilon(std::span<const NoisedUpdates> updates, double delta) {
  double all = 0;
  for (const NoisedUpdates& alike : updates)
    all += static_cast<double>(alike.count) / (alike.noise_multiplier * alike.noise_multiplier);
  if (all == 0) return 0.0;
  Accountant accountant(AccountantKind::kPld);
  FEDGE_TRY_VOID(accountant.add({GaussianMechanism{.noise_multiplier = 1 / std::sqrt(all)}, 1}));
  return accountant.epsilon(delta);
}

}  // namespace fedge::privacy
