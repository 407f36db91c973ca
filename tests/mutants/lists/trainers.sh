# shellcheck shell=bash
# Mutants of what trainer programs send.

mutant trainer-any-target 'Trainers: a target that is no class is counted'
file client/trainers/trainer_predictions.cc
old '    return is_class || (shape.text && target == -1);'
new '    return is_class || target == -1;'
caught_by unit_client 'trainer predictions: what cannot be'

mutant trainer-half-class 'Trainers: a target between two classes is counted as the lower one'
file client/trainers/trainer_predictions.cc
old 'static_cast<double>(target) < static_cast<double>(shape.outputs) &&
                          target == std::floor(target);'
new 'static_cast<double>(target) < static_cast<double>(shape.outputs);'
caught_by unit_client 'trainer predictions: what cannot be'

mutant trainer-predicts-twice 'Trainers: predictions of more samples than there are'
file client/trainers/external_trainer.cc
old 'count_predictions(frame.payload, samples - counted, sums);'
new 'count_predictions(frame.payload, SampleCount(1000), sums);'
caught_by unit_client 'external trainer: an evaluation that a program'

mutant trainer-predicts-few 'Trainers: an evaluation of fewer samples counts'
file client/trainers/external_trainer.cc
old 'if (said != counted || (all && counted != samples))'
new 'if (said != counted || (all && counted.value() == 0))'
caught_by unit_client 'external trainer: an evaluation that a program'

mutant trainer-unchecked-first-model 'Trainers: a first model with values that are not finite'
file client/trainers/first_model.cc
old '  FEDGE_TRY_VOID(check_finite(frame.payload, header));'
new '  (void)check_finite;'
caught_by unit_client 'external trainer: a program is asked for its first'

mutant external-without-program 'External: a client without a program takes part'
file client/prepared_run.cc
old '  if (!side.trainer && learn::is_external(spec.task.model))'
new '  if (false)'
caught_by integration_trainers 'trainers: a client without a program'

mutant external-any-size 'External: tensors of any size'
file learn/models/external.cc
old '      if (extent > left / size)'
new '      if (extent > left)'
caught_by unit_learn 'external: what cannot be a list'

mutant personal-sent 'Personal: the coordinator gets the layers that stay on the client if it asks for them'
file client/local/local_work.cc
old '  if (!own_.intersect(order.coverage).empty())'
new '  if (own_.empty() && !order.coverage.empty() && order.coverage.count() == 0)'
caught_by unit_client 'personal: what stays on the client'

mutant personal-forgotten 'Personal: what a client keeps is lost with its process'
file client/local/client_memory.cc
old '                                              memory.personal.size()};'
new '                                              0};'
caught_by unit_client 'client memory: survives'

mutant personal-not-kept 'Personal: what a client has trained for itself is not kept'
file client/local/local_work.cc
old '    if (personal_.on()) memory.personal = std::move(own);'
new ''
caught_by unit_client 'personal: fedper trains both'

mutant personal-global-head 'Personal: evaluations are of the shared model'
file client/local/personal_work.cc
old '  FEDGE_TRY(sums, evaluate(order, with_own(model, memory)));'
new '  FEDGE_TRY(sums, evaluate(order, model));'
caught_by unit_client 'personal: an evaluation is of the model'

mutant personal-no-pull 'Personal: nothing pulls the own model of Ditto'
file learn/trainer.cc
old 'gradient[i] += plan.lambda * (w[i] - anchor[i]);'
new 'gradient[i] += 0 * plan.lambda * (w[i] - anchor[i]);'
caught_by unit_client 'personal: ditto'

mutant personal-head-once 'Personal: FedRep trains its own part for one epoch only'
file client/local/personal_work.cc
old '  assignment.epochs = personal_.head_epochs;'
new '  assignment.epochs = 1;'
caught_by unit_client 'personal: fedrep trains'
