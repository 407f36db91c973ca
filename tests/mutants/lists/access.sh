# shellcheck shell=bash
# Who is let in (A1).

mutant skip-authentication-return 'A1: a client that is refused is let in all the same'
file server/coordinator/gatekeeper.cc
old '  const auto standing = enrolment_.authenticate(link->peer());
  if (!standing) return refuse(link, standing.error());'
new '  auto standing = enrolment_.authenticate(link->peer());
  if (!standing) {
    refuse(link, standing.error());
    standing = Standing{ClientId(0), false};
  }'
caught_by integration_federation 'A1'

mutant skip-authentication-return-revoked 'A1: a client whose key was revoked is told so and let in all the same'
file server/coordinator/gatekeeper.cc
old '  const auto standing = enrolment_.authenticate(link->peer());
  if (!standing) return refuse(link, standing.error());'
new '  auto standing = enrolment_.authenticate(link->peer());
  if (!standing) {
    refuse(link, standing.error());
    if (standing.error().message.find("revoked") == std::string::npos) return;
    standing = Standing{ClientId(0), false};
  }'
caught_by integration_federation 'A1'

mutant skip-approval-return 'A1: a client that waits for approval is let in all the same'
file server/coordinator/gatekeeper.cc
old '    return dismiss(link, error);
  }
  if (!rate_'
new '    dismiss(link, error);
  }
  if (!rate_'
caught_by integration_federation 'A1 row 36: a pending'

mutant let-in-stranger 'A1: a key that is not enrolled is let in'
file server/enrolment.cc
old '  if (known == index_.end()) return refused("this client is not enrolled here; join with a token first");'
new '  if (known == index_.end()) return Standing{ClientId(0), false};'
caught_by unit_server 'enrolment'
caught_by integration_federation 'A1'

mutant let-in-revoked 'A1: a key that was revoked is let in'
file server/enrolment.cc
old '  if (known->second.state == ClientState::kRevoked) return refused("this client'\''s key has been revoked");
'
new ''
caught_by unit_server 'enrolment'
caught_by integration_federation 'revoked'

mutant keep-revoked 'A1: a client that is revoked while it is connected stays'
file server/coordinator/gatekeeper.cc
old '  if (enrolment_.changed()) expel_revoked();
'
new ''
caught_by integration_federation 'revoked'

mutant work-for-revoked 'A1: a client that was revoked since it connected is given work'
file server/coordinator/run_host_effects.cc
old '  if (!link || !house_.is_welcome(link)) return;'
new '  if (!link) return;'
caught_by integration_federation 'A1: a client that was revoked since'

mutant skip-hello 'A1: whatever comes first is taken for a hello'
file server/coordinator/gatekeeper.cc
old '                             refuse(alive, invalid('
new '                             if (true) return greet(alive, protocol::Hello{});
                             refuse(alive, invalid('
caught_by integration_federation 'A1'

mutant token-for-ever 'A1: a join token may be used as often as one likes'
file server/enrolment.cc
old '    ++token->used;
'
new ''
caught_by unit_server 'enrolment'
