# shellcheck shell=bash
# Mutants of the handling of secrets (A4).

mutant log-a-token 'A4: a join token is written to the coordinator'\''s log'
file server/coordinator/gatekeeper.cc
old '              .with("software", joining.software));
  if (link) link->close("enrolled");'
new '              .with("software", joining.software)
              .with("token", joining.secret));
  if (link) link->close("enrolled");'
caught_by integration_programs 'canary: no token'

mutant log-a-wrong-token 'A4: the refusal of a join token repeats it'
file server/coordinator/gatekeeper.cc
old '  if (!*known) return wrong_token(link, attempt);'
new '  if (!*known) return refuse(link, {ErrorCode::kRefused, "join token " + hello.token + " is not known"});'
caught_by integration_programs 'canary: no token'

mutant audit-a-token 'A4: a join token is written to the audit log'
file server/store/book_events.cc
old '                   {{"token", std::to_string(client.token)}}};'
new '                   {{"token", redemption.secret}}};'
caught_by integration_programs 'canary: no token'

mutant keep-a-token 'A4: the enrolment book keeps the join tokens themselves'
file server/store/detail/join_refusals.h
old 'inline std::string secret_hash(const std::string& secret) { return to_hex(sha256(secret)); }'
new 'inline std::string secret_hash(const std::string& secret) { return secret; }'
caught_by unit_server 'enrolment'
caught_by integration_programs 'canary: no token'

mutant token-on-command-line 'A4: a join token stays readable among the client'\''s arguments'
file apps/client_program.cc
old '  hide_argument(argc, argv, options.token);
'
new ''
caught_by integration_programs 'canary: no token'
