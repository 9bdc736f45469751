/* Stand-in for Open vSwitch's header of this name: the declarations that programs use. */
#ifndef OPENVSWITCH_VLOG_H
#define OPENVSWITCH_VLOG_H 1

enum vlog_level { VLL_OFF, VLL_EMER, VLL_ERR, VLL_WARN, VLL_INFO, VLL_DBG };

struct vlog_module {
    const char *name;
};

struct vlog_module *vlog_module_from_name(const char *name);
void vlog(const struct vlog_module *, enum vlog_level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define VLOG_DEFINE_THIS_MODULE(MODULE) static struct vlog_module this_module = {#MODULE}
#define VLOG_ERR(...) vlog(&this_module, VLL_ERR, __VA_ARGS__)
#define VLOG_WARN(...) vlog(&this_module, VLL_WARN, __VA_ARGS__)
#define VLOG_INFO(...) vlog(&this_module, VLL_INFO, __VA_ARGS__)
#define VLOG_DBG(...) vlog(&this_module, VLL_DBG, __VA_ARGS__)

#endif
