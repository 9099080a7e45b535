// Something else has the name.
extern "C" const char troupe_extension_info[600] = "nothing of Troupe's";
