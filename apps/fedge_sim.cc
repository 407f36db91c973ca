// fedge-sim: the researcher's program: a federated run on this machine.
#include "apps/sim_program.h"

int main(int argc, char** argv) { return fedge::apps::sim_main(argc, argv); }
