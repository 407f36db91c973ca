#include "sim/secure/virtual_secrets.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/crypto/sha256.h"
#include "run/secure_update.h"

namespace fedge::sim {
namespace {

Entropy entropy_of(Rng rng) {
  return [rng](std::span<std::uint8_t> out) mutable {
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
  };
}

}  // namespace

VirtualSecrets::VirtualSecrets(const run::RunConfig& config, std::size_t parameters, Rng rng)
    : config_(config), rng_(std::move(rng)) {
  const privacy::MaskingSpec& masking = config.secure.masking;
  run_ = std::make_shared<const client::MaskedRun>(client::MaskedRun{
      .name = config.name,
      .seed = config.seed,
      .terms = sha256(config.task_text),
      .parameters = parameters,
      .rules = masking.rules,
      .noises_updates = config.privacy.kind == run::DifferentialPrivacySpec::Kind::kLocal,
      .noise_in_sums = masking.noise_multiplier * std::sqrt(masking.rules.honest_survivors())});
}

const SecretKey& VirtualSecrets::identity(ClientId client) {
  const auto known = identities_.find(client);
  if (known != identities_.end()) return known->second;
  std::array<std::uint8_t, 32> seed{};
  entropy_of(rng_.fork("identity", client.value()))(seed);
  return identities_.emplace(client, SecretKey::from_seed(seed)).first->second;
}

Entropy VirtualSecrets::entropy(ClientId id, const protocol::SecureSession& session) {
  Client& client = clients_[id];
  if (!(client.session == session)) {
    client.session = session;
    client.times = 0;
  }
  const Rng rng = rng_.fork("round", session.round.value(), session.track.value())
                      .fork("entropy", id.value(), session.attempt);
  const std::uint64_t before = client.times++;
  return entropy_of(before == 0 ? rng : rng.fork("again", before));
}

void VirtualSecrets::mask(ClientId client, privacy::Masking masking, protocol::UpdateOffer& offer) {
  const protocol::Codec codec = config_.secure.masking.codec;
  offer.update.coverage = masking.coverage();
  offer.update.codec = codec;
  offer.update.raw_size = 0;
  offer.update.levels = 0;
  offer.update.payload_size = masking.coverage().count() * (codec == protocol::Codec::kMasked64 ? 8 : 4);
  offer.update.chunks.resize((offer.update.payload_size - 1) / offer.update.chunk_size + 1);
  offer.samples = SampleCount(1);
  offer.steps = 1;
  offer.train_loss = offer.norm = offer.loss_rms = offer.wanted_share = 0;
  offer.masked_scalars.resize(masking.cells().size() + run::kSecureFigures + offer.sums.size());
  offer.sums.clear();
  clients_[client].masking = std::make_unique<const privacy::Masking>(std::move(masking));
}

void VirtualSecrets::forget_masks(ClientId client) {
  if (const auto known = clients_.find(client); known != clients_.end()) known->second.masking.reset();
}

}  // namespace fedge::sim
