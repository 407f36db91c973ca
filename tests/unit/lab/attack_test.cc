// Whole attacks: their effect on an unprotected directory and on a protected one.
#include <doctest/doctest.h>

#include <cmath>

#include "lab/attack/attack.h"

namespace fedge::lab {
namespace {

AttackOptions options(Attack attack, const std::string& protect) {
  AttackOptions options;
  options.attack = attack;
  options.nodes = 300;
  options.rounds = 24;
  const auto defence = defence_of(protect);
  REQUIRE(defence);
  options.defence = *defence;
  return options;
}

// Returns the mean over some seeds.
AttackResult mean(AttackOptions options, std::size_t seeds = 3) {
  AttackResult sum;
  for (std::size_t i = 0; i < seeds; ++i) {
    options.seed = 1 + i;
    const AttackResult result = run_attack(options);
    for (const AttackFigure& figure : attack_figures())
      sum.*figure.value += result.*figure.value / static_cast<double>(seeds);
  }
  return sum;
}

TEST_CASE(
    "A1 R1 row 58: Sybils at a key: nothing is found where ids are free, and all but nothing lost where they "
    "are not") {
  AttackOptions open = options(Attack::kCrowd, "none");
  open.nodes = 1000;
  CHECK(mean(open, 1).success < 0.2);
  AttackOptions guarded = options(Attack::kCrowd, "all");
  guarded.nodes = 1000;
  const AttackResult result = mean(guarded);
  CHECK(result.success >= 0.95);
  CHECK(result.stale == 0);
  CHECK(result.forged == 0);
}

TEST_CASE(
    "row 58: keys that were made to be near: as many groups of addresses as holders are enough to hide a "
    "record") {
  AttackOptions few = options(Attack::kCrowd, "all");
  few.ground_bits = 16;
  few.groups = 4;
  CHECK(mean(few).success >= 0.95);
  AttackOptions many = few;
  many.groups = 16;
  CHECK(mean(many).success < 0.2);
  many.replication = 20;
  CHECK(mean(many).success >= 0.9);
}

TEST_CASE(
    "N6 A6 row 59: eclipse: victims keep somebody honest near every key, through a start with a hostile "
    "bootstrap") {
  const AttackResult open = mean(options(Attack::kEclipse, "none"), 2);
  CHECK(open.kept < 0.5);
  CHECK(open.success < 0.2);
  const AttackResult guarded = mean(options(Attack::kEclipse, "all"));
  CHECK(guarded.kept >= 0.99);
  CHECK(guarded.success >= 0.95);
}

TEST_CASE(
    "A2 row 60: holders that lie: signatures and asking all of them leave nothing forged or old to believe") {
  const AttackResult open = mean(options(Attack::kPoison, "none"));
  CHECK(open.forged > 0.05);
  CHECK(open.stale > 0.05);
  CHECK(open.rubbish > 65536);
  const AttackResult signed_only = mean(options(Attack::kPoison, "stable,signatures"));
  CHECK(signed_only.forged == 0);
  CHECK(signed_only.stale > 0.05);
  CHECK(signed_only.rubbish == 0);
  const AttackResult guarded = mean(options(Attack::kPoison, "stable,signatures,all-holders"));
  CHECK(guarded.success >= 0.99);
  CHECK(guarded.forged == 0);
  CHECK(guarded.stale == 0);
}

TEST_CASE("A6 row 61: reflection: with tokens no more bytes reach a victim than were sent in its name") {
  CHECK(mean(options(Attack::kReflect, "stable"), 1).amplification > 10);
  CHECK(mean(options(Attack::kReflect, "stable,tokens")).amplification <= 1);
}

TEST_CASE("attacks: without hostile nodes everything is found, and the same seed gives the same figures") {
  for (const Attack attack : {Attack::kCrowd, Attack::kEclipse, Attack::kPoison, Attack::kReflect}) {
    CAPTURE(to_string(attack));
    AttackOptions peace = options(attack, "all");
    peace.hostile = 0;
    CHECK(run_attack(peace).success == 1);
    const AttackOptions war = options(attack, "ids,stable,tokens");
    const AttackResult first = run_attack(war);
    const AttackResult second = run_attack(war);
    for (const AttackFigure& figure : attack_figures()) {
      CAPTURE(figure.key);
      const double a = first.*figure.value;
      const double b = second.*figure.value;
      CHECK((a == b || (std::isnan(a) && std::isnan(b))));
    }
  }
}

TEST_CASE("attacks: what is not known is named") {
  CHECK(attack_of("flood").error().message.find("\"flood\"") != std::string::npos);
  CHECK(defence_of("ids,wishes").error().message.find("\"wishes\"") != std::string::npos);
  CHECK_FALSE(defence_of(""));
  CHECK_FALSE(defence_of("ids,"));
  const auto all = defence_of("all");
  REQUIRE(all);
  CHECK(all->overlay.bound_ids);
  CHECK(all->overlay.paths == 3);
  const auto opendht = defence_of("opendht");
  REQUIRE(opendht);
  CHECK_FALSE(opendht->overlay.bound_ids);
  CHECK(opendht->overlay.per_group == 0);
  CHECK(opendht->overlay.keep_old);
  AttackOptions wrong;
  wrong.hostile = 0.95;
  CHECK(check_attack(wrong).error().message.find("--hostile") != std::string::npos);
  wrong = {};
  wrong.nodes = 10;
  CHECK(check_attack(wrong).error().message.find("--nodes") != std::string::npos);
}

}  // namespace
}  // namespace fedge::lab
