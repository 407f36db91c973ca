// The client daemon in runs with secure aggregation, against a coordinator that the test scripts.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/unit/client/secure_turn.h"

namespace fedge::client {
namespace {

using site::begin_secure;
using site::kFirst;
using site::kSecond;
using site::SecureTurn;
using site::Site;
using site::why_not;

// Stops the site while an update of its first run is offered and has no verdict yet.
void keep_update(Site& site) {
  site.going = {kFirst};
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  site.link->send(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  site.leave();
  REQUIRE(site.pending(kFirst));
}

// A session in which the daemon has answered with its masked update or a failure.
struct MaskedTurn : SecureTurn {
  MaskedTurn(Site& at, std::uint32_t round, std::uint32_t attempt, RunId run = kFirst,
             TrackId track = TrackId())
      : SecureTurn(at, round, attempt, run, track) {
    begin();
    REQUIRE(masks());
  }
};

}  // namespace

TEST_CASE("daemon: for a round it helps to take masks away once, whatever process is asked again") {
  Site site;
  begin_secure(site);
  CHECK(std::get<protocol::RunAnswer>(site.heard[0]).samples == SampleCount(1));
  MaskedTurn first(site, 1, 1);
  const auto offer = std::ranges::find_if(
      site.heard, [](const auto& m) { return std::holds_alternative<protocol::UpdateOffer>(m); });
  REQUIRE(offer != site.heard.end());
  CHECK(std::get<protocol::UpdateOffer>(*offer).update.codec == protocol::Codec::kMasked64);
  CHECK(std::get<protocol::UpdateOffer>(*offer).samples == SampleCount(1));
  CHECK(std::get<protocol::UpdateOffer>(*offer).train_loss == 0);
  REQUIRE(first.reveals());
  const std::string reason = "the masks of round 1 of run 7 were already removed; that round is closed";
  MaskedTurn again(site, 1, 2);
  CHECK(why_not(site) == reason);
  site.leave();
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  MaskedTurn anew(site, 1, 3);
  CHECK(why_not(site) == reason);
  MaskedTurn next(site, 2, 1);
  CHECK(why_not(site).empty());
}

TEST_CASE(
    "daemon: in a masked run no task without a session gets an update, whatever the client insists on") {
  Site site;
  SUBCASE("none") {}
  SUBCASE("--only-secure") { site.secure.required = true; }
  begin_secure(site);
  site.link->send(site.work.request(kFirst, 1));  // secure_attempt is 0
  REQUIRE(site.hears<protocol::TaskFailed>(kFirst));
  CHECK(why_not(site).find("masked updates, but this task asks for an unmasked update") != std::string::npos);
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 0);
  CHECK_FALSE(site.pending(kFirst));
  // The daemon also refuses while a masked update waits for its verdict, and as a repetition of its task.
  MaskedTurn turn(site, 1, 1);
  site.link->send(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::TaskFailed>(kFirst));
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 1);
}

TEST_CASE(
    "daemon: an update without masks that an earlier process has kept does not leave one that insists") {
  Site site;
  keep_update(site);
  site.secure.required = true;
  site.begin();
  CHECK(
      site.has_said("update.dropped reason=\"the saved update is not masked, but this client was started "
                    "with --only-secure\""));
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  site.link->send(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::TaskFailed>(kFirst));
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 0);
  CHECK_FALSE(site.pending(kFirst));
}

TEST_CASE(
    "daemon: an update that an earlier process has kept without noise does not leave one that asks for "
    "noise") {
  Site site;
  keep_update(site);
  std::string option;
  SUBCASE("--max-epsilon") {
    site.max_epsilon = 8;
    option = "--max-epsilon";
  }
  SUBCASE("--require-noise") {
    site.require_noise = 8;
    option = "--require-noise";
  }
  // The task arrives before the run's description.
  site.says_instead = [](protocol::Message& message) {
    return !std::holds_alternative<protocol::RunDescription>(message);
  };
  site.begin();
  CHECK(site.has_said(
      "update.dropped reason=\"the saved update may have no noise, but this client was started with " +
      option + "\""));
  REQUIRE(site.run_until([&] { return site.link && site.greeted; }));
  site.link->send(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::TaskFailed>(kFirst));
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 0);
  CHECK_FALSE(site.pending(kFirst));
}

TEST_CASE("daemon: an update with noise that an earlier process has kept is made again, and counts once") {
  Site site;
  site.max_epsilon = 8;
  site.work.text +=
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
      "max_participations = 1\ndelta = 1e-5\n";
  protocol::Manifest update;
  site.hears_too = [&](const protocol::Message& message) {
    if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) update = offer->update;
  };
  keep_update(site);
  const protocol::Manifest first = std::exchange(update, {});
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  site.link->send(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  CHECK(update == first);
}

TEST_CASE("daemon: a coordinator that ends a run and begins it anew gets no second sum of the same update") {
  Site site;
  begin_secure(site);
  MaskedTurn first(site, 1, 1);
  REQUIRE(first.reveals());
  RunId run = kFirst;
  std::string reason = "the masks of round 1 of run 7 were already removed; that round is closed";
  SUBCASE("the same run, after RunEnded") { site.link->send(protocol::RunEnded{kFirst, "done"}); }
  SUBCASE("the same run, after a Welcome that does not name it") {
    site.going = {};
    site.heard.clear();
    site.link->close("cut");
    REQUIRE(site.has_said_part("the run ended while this client was disconnected"));
    site.link->close("cut");
  }
  SUBCASE("a second run of the same file") {
    run = kSecond;
    reason =
        "an update from the same model and the same run description was already summed in round 1 of run 7, "
        "and a "
        "second sum could reveal a single update; use another run.seed";
    site.link->send(protocol::RunEnded{kFirst, "done"});
  }
  SUBCASE("a second run whose description differs in what changes no update") {
    run = kSecond;
    reason =
        "this update was already summed once, and a second sum could reveal the update; use another run.seed";
    site.link->send(protocol::RunEnded{kFirst, "done"});
    site.work.text += "# another\n";
  }
  SUBCASE("in the next process") {
    site.leave();
    site.begin();
    REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  }
  site.going = {run};
  REQUIRE(site.run_until([&] { return site.link != nullptr; }));
  site.heard.clear();
  site.link->send(site.work.description(run));
  REQUIRE(site.hears<protocol::RunAnswer>(run));
  MaskedTurn second(site, 1, 2, run);
  CHECK(why_not(site) == reason);
  CHECK(site.count<protocol::UpdateOffer>(run) == 0);
}

TEST_CASE("daemon: of two runs at once one alone gets a sum of the same update") {
  Site site;
  begin_secure(site);
  MaskedTurn first(site, 1, 1);
  SUBCASE("two runs of one file") {}
  SUBCASE("two runs that differ in what changes no update") { site.work.text += "# another\n"; }
  site.link->send(site.work.description(kSecond));
  REQUIRE(site.hears<protocol::RunAnswer>(kSecond));
  MaskedTurn second(site, 1, 1, kSecond);
  CHECK(why_not(site) ==
        "this update is already being summed in run 7, and a second sum could reveal the update; use another "
        "run.seed in one of the runs");
  CHECK(site.count<protocol::UpdateOffer>(kSecond) == 0);
  first.next = 0;  // replay all messages heard since
  CHECK(first.reveals());
}

TEST_CASE("daemon: two tracks that begin from one model are both summed where a client noises its updates") {
  Site site;
  site.work.text +=
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  begin_secure(site);
  for (const std::uint32_t track : {0U, 1U}) {
    CAPTURE(track);
    MaskedTurn turn(site, 1, 1, kFirst, TrackId(track));
    REQUIRE(why_not(site) == "");
    CHECK(turn.reveals());
  }
}

TEST_CASE("daemon: a run with next to no noise is a second sum of the same update like one with none") {
  Site site;
  const std::string plain = site.work.text;
  begin_secure(site);
  MaskedTurn first(site, 1, 1);
  REQUIRE(first.reveals());
  site.link->send(protocol::RunEnded{kFirst, "done"});
  site.heard.clear();
  // Each client adds its own noise.
  site.work.text +=
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 0.4\nfraction_bits = 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  site.link->send(site.work.description(kSecond));
  REQUIRE(site.hears<protocol::RunAnswer>(kSecond));
  const auto answer = std::get<protocol::RunAnswer>(site.heard.front());
  CHECK_FALSE(answer.ready);
  CHECK(answer.reason.find("the noise that each client adds must be at least 0.5") != std::string::npos);
  site.heard.clear();
  // The clients add the noise together.
  privacy::MaskingSpec spec{.fraction_bits = 16, .max_weight = 1, .clipping_norm = 1000};
  spec.noise_multiplier = 0.01;
  spec.uniform_weight = 1;
  spec.max_participations = 100;
  site.work.text = plain + config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
  site.link->send(site.work.description(kSecond));
  REQUIRE(site.hears<protocol::RunAnswer>(kSecond));
  MaskedTurn second(site, 1, 1, kSecond);
  CHECK(site.count<protocol::UpdateOffer>(kSecond) == 0);
  CHECK(why_not(site).find("use another run.seed") != std::string::npos);
}

TEST_CASE(
    "daemon: what is asked for by --require-noise counts the sums of all runs, each with others' noise") {
  Site site;
  // Two of three clients are honest: the noise of a sum is 1.4142 times a client's, 2.1213. One update stays
  // within the limit, two exceed it.
  site.require_noise = 2.0;
  privacy::MaskingSpec spec{.fraction_bits = 4, .max_weight = 1, .clipping_norm = 1000};
  spec.noise_multiplier = 1.5;
  spec.uniform_weight = 1;
  spec.max_participations = 1;
  site.work.text += config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
  site.begin();
  for (const RunId run : {kFirst, kSecond}) {
    REQUIRE(site.hears<protocol::RunAnswer>(run));
    REQUIRE(std::get<protocol::RunAnswer>(site.heard.back()).ready);
  }
  MaskedTurn first(site, 1, 1);
  REQUIRE(why_not(site) == "");
  REQUIRE(first.reveals());
  MaskedTurn second(site, 1, 1, kSecond);
  CHECK(site.count<protocol::UpdateOffer>(kSecond) == 0);
  CHECK(why_not(site).find("training has failed") == std::string::npos);
  CHECK(site.has_said_part("--require-noise 2"));
}

TEST_CASE("daemon: a task of a round that was worked on counts again where its model is another one") {
  Site site;
  site.max_updates_per_day = 2;
  site.going = {kFirst};
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  std::size_t offers = 0;
  for (const std::size_t end : {100U, 200U, 300U}) {
    site.heard.clear();
    protocol::TrainRequest request = site.work.request(kFirst, 1);
    request.coverage = Coverage::of({{0, end}});
    site.link->send(request);
    REQUIRE(site.run_until([&] {
      return site.count<protocol::UpdateOffer>(kFirst) + site.count<protocol::TaskFailed>(kFirst) > 0;
    }));
    offers += static_cast<std::size_t>(site.count<protocol::UpdateOffer>(kFirst));
    site.link->send(protocol::UpdateVerdict{kFirst, RoundNumber(1), true, {}, {}});
  }
  CHECK(offers == 2);
  CHECK(why_not(site).find("the limit of --max-updates-per-day") != std::string::npos);
}

namespace {

// Training from this value ends in numbers that are not finite.
constexpr float kDiverging = 3e38F;
const std::string kLoud =
    "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
    "max_participations = 2\ndelta = 1e-5\n";

void begin_masked(Site& site, const privacy::MaskingSpec& spec) {
  site.going = {kFirst};
  site.work.text += config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
}

}  // namespace

TEST_CASE("daemon: why an update of a masked run cannot be sent tells nothing of its values") {
  Site site;
  privacy::MaskingSpec spec{.max_weight = 1000};
  std::string reason = "the training loss is not finite";
  SUBCASE("a bound that its values exceed") {
    spec.max_abs = 1e-6;
    reason = "";  // the update is sent normally
  }
  SUBCASE("training that diverges") { site.work.begin_from(kDiverging); }
  SUBCASE("training that diverges, where all add noise") {
    site.work.begin_from(kDiverging);
    spec = {.fraction_bits = 12,
            .uniform_weight = 1,
            .max_weight = 1,
            .clipping_norm = 1,
            .noise_multiplier = 1,
            .max_participations = 2};
  }
  SUBCASE("training that diverges, where each adds noise") {
    site.work.begin_from(kDiverging);
    site.work.text += kLoud;
  }
  begin_masked(site, spec);
  // The check for repeated updates does not apply to updates of zeros.
  for (const std::uint32_t round : {1U, 2U}) {
    CAPTURE(round);
    MaskedTurn turn(site, round, 1);
    CHECK(why_not(site).empty());
    CHECK(site.count<protocol::UpdateOffer>(kFirst) == 1);
    CHECK(site.count<protocol::TaskFailed>(kFirst) == 0);
    if (!reason.empty()) CHECK(site.has_said_part("training.failed"));
    CHECK(site.has_said_part(reason));
    CHECK(turn.reveals());
    site.tell(protocol::UpdateVerdict{kFirst, RoundNumber(round), true, {}, {}});
  }
}

TEST_CASE("daemon: whether training has diverged is no answer where a client noises its updates") {
  Site site;
  site.going = {kFirst};
  site.work.begin_from(kDiverging);
  site.work.text += kLoud;
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  for (const std::uint32_t round : {1U, 2U}) {
    site.heard.clear();
    site.link->send(site.work.request(kFirst, round));
    REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
    CHECK(site.has_said_part("the training loss is not finite"));
    site.link->send(protocol::UpdateVerdict{kFirst, RoundNumber(round), true, {}, {}});
  }
  // Failed updates count towards the limit.
  site.heard.clear();
  site.link->send(site.work.request(kFirst, 3));
  REQUIRE(site.hears<protocol::TaskFailed>(kFirst));
  CHECK(site.has_said_part("has already sent 2 updates, the limit of"));
}

TEST_CASE("daemon: why a client of a masked run cannot train stays in its own log") {
  Site site;
  site.work.text +=
      "[local_privacy]\nclipping_norm = 1000.0\nnoise_multiplier = 1000.0\nfraction_bits = 30\n"
      "max_participations = 100\ndelta = 1e-5\n";
  begin_masked(site, {.max_weight = 1000});
  MaskedTurn turn(site, 1, 1);
  CHECK(why_not(site) == "training failed; see this client's log");
  CHECK(site.has_said_part("more noise than this program can generate"));
}

TEST_CASE("daemon: no share leaves before it is written down that it does") {
  Site site;
  begin_secure(site);
  MaskedTurn turn(site, 1, 1);
  std::filesystem::create_directory(site.state.path() / "summed-updates");
  CHECK_FALSE(turn.reveals());
  CHECK(site.has_said_part("summed-updates"));
}

TEST_CASE("daemon: no share leaves before it is written down whose keys the others have") {
  Site site;
  std::size_t written = 0;
  site.hears_too = [&](const protocol::Message& message) {
    if (!std::holds_alternative<protocol::SecureShares>(message)) return;
    const auto text = read_file(site.state.path() / "known-clients", 1000);
    REQUIRE(text);
    for (const SecretKey& key : SecureTurn::keys)
      CHECK(text->find(to_hex(key.public_key())) != std::string::npos);
    ++written;
  };
  begin_secure(site);
  std::filesystem::create_directory(site.state.path() / "known-clients");
  MaskedTurn first(site, 1, 1);
  CHECK(why_not(site) == "the keys of the other clients cannot be saved; see this client's log");
  CHECK(site.has_said_part("known_clients.save_failed clients=2 reason="));
  CHECK(written == 0);
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 0);
  // Once the keys can be saved, the next session succeeds.
  std::filesystem::remove(site.state.path() / "known-clients");
  MaskedTurn second(site, 1, 2);
  CHECK(why_not(site) == "");
  CHECK(written == 1);
  CHECK(second.reveals());
}

TEST_CASE("daemon: an update is not masked for others whose keys are not written down, whoever hurries it") {
  Site site;
  begin_secure(site);
  std::filesystem::create_directory(site.state.path() / "known-clients");
  site.says_instead = [&](protocol::Message& message) {
    const auto* roster = std::get_if<protocol::SecureRoster>(&message);
    if (roster == nullptr) return true;
    site.link->send(*roster);
    protocol::SecurePeerShares shares{roster->session, {}};
    for (const auto& peer : roster->peers) shares.shares.push_back({.from = peer.number, .box = {}});
    site.link->send(shares);
    return false;
  };
  MaskedTurn turn(site, 1, 1);
  CHECK(why_not(site).find("keys of the other clients cannot be saved") != std::string::npos);
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 0);
}

TEST_CASE("daemon: clients agree on masks while a device trains, also those that see each other first") {
  Site site;
  site.trainer = {
      .command = {"/usr/bin/python3", FEDGE_SOURCE_DIR "/tests/support/trainers/trainer_program.py", "hangs",
                  site.data.path().string()},
      .on_event = {}};
  begin_secure(site);
  SecureTurn turn(site, 1, 1);
  turn.begin();
  REQUIRE(site.run_until([&] { return std::filesystem::exists(site.data.path() / "done-hangs"); }));
  CHECK(site.run_until([&] {
    turn.hear();
    return turn.agreed;
  }));
}

TEST_CASE("daemon: an answer that is asked for again is written down once") {
  Site site;
  begin_secure(site);
  MaskedTurn turn(site, 1, 1);
  REQUIRE(turn.reveals());
  site.heard.clear();
  protocol::TrainRequest request = site.work.request(kFirst, 1);
  request.secure_attempt = 1;
  for (int i = 0; i < 3; ++i) site.link->send(request);
  REQUIRE(site.run_until([&] {
    return std::ranges::count_if(site.heard, [](const protocol::Message& message) {
             return std::holds_alternative<protocol::SecureUnmask>(message);
           }) == 3;
  }));
  CHECK(std::filesystem::file_size(site.state.path() / "summed-updates") == 64);
}

TEST_CASE(
    "daemon: a run that is begun anew gets another noise, and a task that is asked for again the same") {
  Site site;
  site.work.text +=
      "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
      "max_participations = 100\ndelta = 1e-5\n";
  const auto offered = [&](RunId run) {
    site.going = {run};
    site.heard.clear();
    site.link->send(site.work.description(run));
    REQUIRE(site.hears<protocol::RunAnswer>(run));
    site.link->send(site.work.request(run, 1));
    REQUIRE(site.hears<protocol::UpdateOffer>(run));
    for (const auto& message : site.heard)
      if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) return offer->update.id();
    return protocol::ObjectId();
  };
  site.going = {kFirst};
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  const auto first = offered(kFirst);
  site.link->send(protocol::RunEnded{kFirst, "done"});
  CHECK(offered(kFirst) == first);  // the coordinator has forgotten the run and repeats it
  site.link->send(protocol::RunEnded{kFirst, "done"});
  CHECK(offered(kSecond) != first);
}

TEST_CASE("daemon: a device that makes so many updates a day makes no more, whatever run asks") {
  Site site;
  site.max_updates_per_day = 2;
  site.begin();
  for (const RunId run : {kFirst, kSecond}) REQUIRE(site.hears<protocol::RunAnswer>(run));
  for (const RunId run : {kFirst, kSecond}) {
    site.link->send(site.work.request(run, 1));
    REQUIRE(site.hears<protocol::UpdateOffer>(run));
    site.link->send(protocol::UpdateVerdict{run, RoundNumber(1), true, {}, {}});
  }
  site.heard.clear();
  site.link->send(site.work.request(kFirst, 2));
  REQUIRE(site.hears<protocol::TaskFailed>(kFirst));
  CHECK(why_not(site).find("the limit of --max-updates-per-day") != std::string::npos);
  CHECK(site.count<protocol::UpdateOffer>(kFirst) == 0);
}

TEST_CASE("daemon: a task that is asked for again with another amount of noise counts as another update") {
  Site site;
  const std::string plain = site.work.text;
  const auto offers = [&](const std::string& noise) {
    site.heard.clear();
    site.link->send(protocol::RunEnded{kFirst, "done"});
    site.work.text = plain + "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = " + noise +
                     "\nfraction_bits = 14\nmax_participations = 2\ndelta = 1e-5\n";
    site.link->send(site.work.description(kFirst));
    site.link->send(site.work.request(kFirst, 1));
    REQUIRE(site.run_until([&] {
      return site.count<protocol::UpdateOffer>(kFirst) + site.count<protocol::TaskFailed>(kFirst) > 0;
    }));
    return site.count<protocol::UpdateOffer>(kFirst) > 0;
  };
  site.going = {};
  site.begin();
  REQUIRE(site.run_until([&] { return site.greeted; }));
  CHECK(offers("10.0"));
  CHECK(offers("20.0"));
  CHECK_FALSE(offers("30.0"));
  CHECK(why_not(site).find("has already sent 2 updates, the limit of") != std::string::npos);
}

TEST_CASE("daemon: of a run that is described twice at once the second description is the one that counts") {
  Site site;
  site.going = {};
  const std::string plain = site.work.text;
  site.begin();
  REQUIRE(site.run_until([&] { return site.greeted; }));
  // Both descriptions arrive before either run is prepared.
  site.work.text =
      plain + config::canonical_toml({{"masking", {privacy::to_table({.max_weight = 1000}), ""}}});
  site.tell(site.work.description(kFirst));
  site.tell(protocol::RunEnded{kFirst, "begun anew"});
  site.work.text = plain;
  site.tell(site.work.description(kFirst));
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  // In a masked run the answer would not contain the number of samples.
  CHECK(std::get<protocol::RunAnswer>(site.heard.front()).samples == SampleCount(40));
  site.tell(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  CHECK(site.count<protocol::RunAnswer>(kFirst) == 1);
}

TEST_CASE("daemon: another key for a client than it has seen ends its part, and it says whose") {
  Site site;
  begin_secure(site);
  MaskedTurn first(site, 1, 1);
  REQUIRE(first.reveals());
  site.leave();
  SecureTurn::keys[1] = SecretKey::generate();
  site.begin();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  MaskedTurn second(site, 2, 1);
  CHECK(why_not(site).find("client 2 had another key when this client first saw it") == 0);
}

TEST_CASE("daemon: a device that asks for more clients, or for secure sums alone, gets its way") {
  Site site;
  SUBCASE("more clients than the session has") {
    site.secure.rules.min_survivors = 4;
    begin_secure(site);
    MaskedTurn turn(site, 1, 1);
    CHECK(why_not(site) ==
          "the coordinator sums the updates of only 3 clients; this client requires at least 4");
  }
  SUBCASE("secure sums alone") {
    site.secure.required = true;
    site.begin();
    REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
    const auto answer = std::get<protocol::RunAnswer>(site.heard[0]);
    CHECK_FALSE(answer.ready);
    CHECK(answer.code == ErrorCode::kRefused);
    CHECK(answer.reason.find("--only-secure") != std::string::npos);
  }
}

}  // namespace fedge::client
