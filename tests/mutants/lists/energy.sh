# shellcheck shell=bash
# Mutants of energy: power, plans, ledgers, batteries, and what clients say.

mutant power-law-square 'energy 1: the approximation grows with the square of the frequency'
file core/energy/power.cc
old 'volts * volts * hertz : hertz * hertz * hertz;'
new 'volts * volts * hertz : hertz * hertz;'
caught_by unit_core 'power'

mutant power-anchor-swapped 'energy 2: a law is calibrated at the other end'
file core/energy/power.cc
old '  const double coefficient = anchor == PowerAnchor::kLowest    ? lowest'
new '  const double coefficient = anchor == PowerAnchor::kHighest   ? lowest'
caught_by unit_core 'power'

mutant work-first-layer 'the first layer costs as much as the others'
file core/energy/training_work.cc
old '    const double operations = 2 + (frozen ? 0 : 2) + (lowest ? 0 : 2);'
new '    const double operations = 2 + (frozen ? 0 : 2) + (lowest ? 2 : 2);'
caught_by unit_core 'training work'

mutant anycost-ignores-energy 'energy 6: the limit of energy does not count'
file aggregation/planners/anycost.cc
old 'cost.seconds <= options_.time_limit) &&'
new 'cost.seconds <= options_.time_limit) ||'
caught_by unit_aggregation 'energy 6'

mutant anycost-forgets-download 'energy 6: the download takes no time'
file aggregation/planners/anycost.cc
old '  return {.seconds = receives + computes + sends,'
new '  return {.seconds = computes + sends,'
caught_by unit_aggregation 'energy 6'

mutant anycost-first-choice 'energy 6: the first frequency is taken, not the best'
file aggregation/planners/anycost.cc
old 'if (first || better(choice, best)) best = choice;'
new 'if (first || (step == 0 && better(choice, best))) best = choice;'
caught_by unit_aggregation 'energy 6'

mutant unit-order-without-inputs 'energy 10: units move, but the inputs of the next layer do not'
file aggregation/planners/unit_order.cc
old 'move_layer(layers[l], orders[l], l == 0 ? all : orders[l - 1], before, model);'
new 'move_layer(layers[l], orders[l], all, before, model);'
caught_by unit_aggregation 'unit order'

mutant unit-order-without-biases 'energy 10: the biases stay where they were'
file aggregation/planners/unit_order.cc
old 'to[vector + unit] = from[vector + rows[unit]];'
new 'to[vector + unit] = from[vector + unit];'
caught_by unit_aggregation 'energy 10'

mutant meter-forgets-cut 'energy 9: an activity that is cut counts for nothing'
file sim/energy/energy_meter.cc
old '  charge(client, found->second, std::min(at, open->until));
  open.reset();'
new '  charge(client, found->second, std::min(at, open->from));
  open.reset();'
caught_by unit_sim 'energy'

mutant meter-awake-twice 'energy 9: a device is awake once for each activity'
file sim/energy/energy_meter.cc
old '  device.awake = until;
}'
new '}'
caught_by unit_sim 'energy'

mutant dropout-without-energy 'energy 9: training that is abandoned goes on consuming'
file sim/clients/virtual_training.cc
old '  surroundings_.pool.drop(client);
  stop(client, Activity::kTraining);'
new '  surroundings_.pool.drop(client);'
caught_by unit_sim 'energy runs: a task that is cancelled'

mutant battery-resumes-at-once 'a device works again as soon as it is charged a little'
file sim/energy/battery.cc
old 'state.empty ? spec_.resume_at * spec_.capacity : 0;'
new 'state.empty ? 0.001 * spec_.capacity : 0;'
caught_by unit_sim 'battery'

mutant battery-charged-all-day 'a battery is charged at all hours'
file sim/energy/battery.cc
old '  if (spec_.charge_from == spec_.charge_to) return false;'
new '  if (spec_.charge_from != spec_.charge_to) return true;'
caught_by unit_sim 'battery'

mutant masked-joules-accepted 'a masked update that states its energy is accepted'
file server/engine/offer_check.cc
old '  if (offer.joules) return invalid('
new '  if (offer.joules && offer.samples.value() > 1) return invalid('
caught_by unit_server 'offer check'

mutant noised-joules 'a client that adds noise says what its training consumed'
file client/device/update_maker.cc
old '  return context_.options.meter != nullptr && !run.masking && !run.local_privacy;'
new '  return context_.options.meter != nullptr && !run.masking;'
caught_by unit_client 'daemon'

mutant noised-power 'a client that adds noise describes its processor'
file client/device/task_worker.cc
old 'told && ready.status.power ?'
new 'ready.status.power ?'
caught_by unit_client 'daemon'

mutant undescribed-client-admitted 'a planner of energy gets a client that does not describe its processor'
file server/conductor/conductor.cc
old '  if (!answer.power && setup_.config.strategy.planner_traits.reads_power)'
new '  if (!answer.ready && setup_.config.strategy.planner_traits.reads_power)'
caught_by unit_server 'conductor: a planner of energy'

mutant rapl-wraps-unseen 'a counter that may have wrapped twice is believed'
file client/energy/energy_meter.cc
old '    if (passed * kMostWatts * 1e6 >= static_cast<double>(*range)) return std::nullopt;'
new '    if (passed < 0) return std::nullopt;'
caught_by unit_client 'energy meter'

mutant sampler-ignores-battery 'energy_aware: the battery does not count'
file aggregation/samplers/energy_aware.cc
old 'battery == battery_.end() ? 1 : battery->second;'
new 'battery == battery_.end() ? 1 : 1;'
caught_by unit_aggregation 'energy_aware'
