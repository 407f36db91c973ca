#include "privacy/differential/local_privacy.h"

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

// The continuous Gaussian's, which the discrete one's cannot be told from at a standard deviation of hundreds
// of thousands of units (run/privacy/private_update.h).
Result<double> guaranteed_epsilon(const LocalPrivacySpec& spec) {
  Accountant accountant(AccountantKind::kPld);
  FEDGE_TRY_VOID(accountant.add(
      {GaussianMechanism{.noise_multiplier = spec.noise_multiplier}, spec.max_participations}));
  return accountant.epsilon(spec.delta);
}

}  // namespace fedge::privacy
