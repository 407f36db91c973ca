#include "sim/secure/virtual_sessions.h"

#include <utility>

#include "core/node.h"
#include "protocol/codec.h"
#include "run/secure_update.h"

namespace fedge::sim {
namespace {

Entropy entropy_of(Rng rng) {
  return [rng](std::span<std::uint8_t> out) mutable {
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
  };
}

}  // namespace

VirtualSessions::VirtualSessions(Surroundings surroundings)
    : surroundings_(std::move(surroundings)), terms_(sha256(surroundings_.config.task_text)) {}

const SecretKey& VirtualSessions::identity(ClientId client) {
  const auto known = identities_.find(client);
  if (known != identities_.end()) return known->second;
  std::array<std::uint8_t, 32> seed{};
  entropy_of(surroundings_.rng.fork("identity", client.value()))(seed);
  return identities_.emplace(client, SecretKey::from_seed(seed)).first->second;
}

Entropy VirtualSessions::secrets_of(ClientId client, const protocol::SecureSession& session) {
  Begun& begun = begun_[client];
  if (!(begun.session == session)) begun = {session};
  const Rng rng = surroundings_.rng.fork("round", session.round.value(), session.track.value())
                      .fork("entropy", client.value(), session.attempt);
  const std::uint64_t before = begun.times++;
  return entropy_of(before == 0 ? rng : rng.fork("again", before));
}

void VirtualSessions::sync_session(ClientId client, const Task& task) {
  const protocol::TrainRequest* request = task.request;
  if (request == nullptr || request->secure_attempt == 0) {
    members_.erase(client);
    return;
  }
  const protocol::SecureSession wanted{request->run, request->round, request->track, request->secure_attempt};
  privacy::SecureClient* session = session_of(client);
  std::vector<privacy::SecureClient::Effect> effects;
  if (session != nullptr && session->session() == wanted) {
    if (task.asked) session->repeat(effects);
    return carry_out(client, effects);
  }
  if (session == nullptr && task.update_kept) return;
  privacy::MemberTerms terms{.session = wanted,
                             .self = client,
                             .model = request->model.id(),
                             .terms = terms_,
                             .parameters = surroundings_.parameters,
                             .trained = request->coverage,
                             .rules = surroundings_.config.secure.masking.rules,
                             .fast_aes = has_fast_aes(),
                             .check_pinned_key = {}};
  Member member{
      std::make_unique<privacy::SecureClient>(std::move(terms), identity(client), secrets_of(client, wanted)),
      nullptr};
  member.session->start(effects);
  members_.insert_or_assign(client, std::move(member));
  carry_out(client, effects);
}

privacy::SecureClient* VirtualSessions::session_of(ClientId client) const {
  const auto member = members_.find(client);
  return member != members_.end() ? member->second.session.get() : nullptr;
}

void VirtualSessions::lose_secrets(ClientId client) {
  if (const auto member = members_.find(client); member != members_.end()) member->second.session.reset();
}

bool VirtualSessions::hear(ClientId client, const protocol::Message& message) {
  privacy::SecureClient* session = session_of(client);
  std::vector<privacy::SecureClient::Effect> effects;
  const auto heard = [&](const auto& specific) {
    if (session != nullptr) session->receive(specific, effects);
    return true;
  };
  const bool known = std::visit(Overloaded{[&](const protocol::SecureRoster& m) { return heard(m); },
                                           [&](const protocol::SecurePeerShares& m) { return heard(m); },
                                           [&](const protocol::SecureSurvivors& m) { return heard(m); },
                                           [&](const protocol::SecureConsents& m) { return heard(m); },
                                           [](const auto&) { return false; }},
                                message);
  carry_out(client, effects);
  return known;
}

void VirtualSessions::carry_out(ClientId client, const std::vector<privacy::SecureClient::Effect>& effects) {
  using Session = privacy::SecureClient;
  for (const auto& effect : effects) {
    if (const auto* send = std::get_if<Session::Send>(&effect)) {
      surroundings_.send(client, std::visit([](const auto& specific) { return protocol::Message(specific); },
                                            send->message));
    } else if (std::holds_alternative<Session::Ready>(effect)) {
      surroundings_.on_ready(client);
    } else {
      const Error& error = std::get<Session::Stopped>(effect).error;
      surroundings_.on_event(Event{Severity::kWarning, "secure.session_stopped", {}}
                                 .with("client", std::int64_t{client.value()})
                                 .with("reason", error.message));
      surroundings_.on_stopped(client, error);
    }
  }
}

bool VirtualSessions::ready(ClientId client) const {
  const privacy::SecureClient* session = session_of(client);
  return session != nullptr && session->ready();
}

void VirtualSessions::masked(ClientId client) {
  Member& member = members_.at(client);
  member.masking = std::make_unique<const privacy::Masking>(member.session->masking());
  member.session->masked();
}

// Adds no scalars to the offer: the simulation masks them when the update is folded.
void VirtualSessions::describe(ClientId client, protocol::UpdateOffer& offer) const {
  const privacy::Masking masking = members_.at(client).session->masking();
  const protocol::Codec codec = surroundings_.config.secure.masking.codec;
  offer.update.coverage = masking.coverage();
  offer.update.codec = codec;
  offer.update.raw_size = 0;
  offer.update.levels = 0;
  offer.update.payload_size = masking.coverage().count() * (codec == protocol::Codec::kMasked64 ? 8 : 4);
  offer.update.chunks.resize((offer.update.payload_size - 1) / offer.update.chunk_size + 1);
  offer.samples = SampleCount(1);
  offer.steps = 1;
  offer.train_loss = offer.norm = offer.loss_rms = offer.wanted_share = 0;
  offer.masked_scalars.resize(masking.cells().size() + run::kSecureFigures);
}

}  // namespace fedge::sim
