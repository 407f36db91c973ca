// fedge-sim: simulates federated runs on this machine, for researchers.
#include "apps/sim_program.h"

int main(int argc, char** argv) { return fedge::apps::sim_main(argc, argv); }
