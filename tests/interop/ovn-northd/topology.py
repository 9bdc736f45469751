"""The logical network that ovn-northd translates: generated, the same at every run.

The numbers below are the floor of the suite; every kind of northbound object that changes southbound contents is in.
Tunnel keys are requested, because those that ovn-northd chooses by itself follow the order of its hash tables, that is
the random uuids of the rows, and so differ between two runs on the same server.
"""

SWITCHES = 12
ROUTERS = 4
PORTS_PER_SWITCH = 20


def batches():
    """Lists of ovn-nbctl commands; each list is one transaction."""
    yield [
        "set NB_Global . options:mac_prefix=0a:00:01 options:svc_monitor_mac=0a:00:01:ff:ff:ff name=zone1",
        "set NB_Global . options:use_logical_dp_groups=true options:northd_probe_interval=60000",
    ]
    for r in range(ROUTERS):
        yield [f"lr-add lr{r} -- set Logical_Router lr{r} options:requested-tnl-key={500 + r}"]
    for s in range(SWITCHES):
        yield switch(s)
    yield list(joins())
    for s in range(SWITCHES):
        yield list(router_port(s))
    yield list(groups())
    for s in range(SWITCHES):
        yield list(rules(s))
    yield list(balancers())
    yield list(translations())
    yield list(routes())
    yield list(extras())


def switch(s):
    commands = [
        f"ls-add ls{s} -- set Logical_Switch ls{s} other_config:requested-tnl-key={100 + s}"
        f" other_config:subnet=10.{s}.0.0/24 other_config:exclude_ips=10.{s}.0.1..10.{s}.0.9",
        f"--id=@dhcp{s} create DHCP_Options cidr=10.{s}.0.0/24 options:lease_time=3600 options:router=10.{s}.0.1"
        f" options:server_id=10.{s}.0.1 options:server_mac=00:00:00:0{s:x}:00:01",
    ]
    for p in range(PORTS_PER_SWITCH):
        name = f"vm{s}-{p}"
        address = f"00:00:00:0{s:x}:01:{p:02x} 10.{s}.0.{p + 10}" + (f" fd00:{s:x}::{p + 10:x}" if p % 3 == 0 else "")
        commands += [
            f"lsp-add ls{s} {name}",
            f"lsp-set-addresses {name} '{address}'",
            f"set Logical_Switch_Port {name} options:requested-tnl-key={p + 1}",
        ]
        if p % 2 == 0:
            commands.append(f"lsp-set-port-security {name} '{address}'")
        if p % 4 == 0:
            commands.append(f"set Logical_Switch_Port {name} dhcpv4_options=@dhcp{s}")
        if p == 5:
            commands.append(f"lsp-set-enabled {name} disabled")
        if p == 6:
            commands.append(f"lsp-set-addresses {name} unknown")
    if s % 3 == 0:
        commands.append(
            f"lsp-add ls{s} ln{s} '' {s + 100} -- lsp-set-type ln{s} localnet -- lsp-set-addresses ln{s} unknown"
            f" -- lsp-set-options ln{s} network_name=phys requested-tnl-key=90"
        )
    return commands


def router_port(s):
    r = s % ROUTERS
    yield f"lrp-add lr{r} lr{r}-ls{s} 00:00:00:0{s:x}:00:01 10.{s}.0.1/24 fd00:{s:x}::1/64"
    yield f"set Logical_Router_Port lr{r}-ls{s} options:requested-tnl-key={s + 1}"
    yield (
        f"lsp-add ls{s} ls{s}-lr{r} -- lsp-set-type ls{s}-lr{r} router -- lsp-set-addresses ls{s}-lr{r} router"
        f" -- lsp-set-options ls{s}-lr{r} router-port=lr{r}-ls{s} requested-tnl-key=99"
    )


def joins():
    """A transit switch that all routers share, and a distributed gateway port on the first."""
    yield "ls-add join -- set Logical_Switch join other_config:requested-tnl-key=400"
    for r in range(ROUTERS):
        yield f"lrp-add lr{r} lr{r}-join 00:00:01:00:00:0{r + 1} 100.64.0.{r + 1}/24"
        yield f"set Logical_Router_Port lr{r}-join options:requested-tnl-key=50"
        yield (
            f"lsp-add join join-lr{r} -- lsp-set-type join-lr{r} router -- lsp-set-addresses join-lr{r} router"
            f" -- lsp-set-options join-lr{r} router-port=lr{r}-join requested-tnl-key={r + 1}"
        )
    yield "ls-add public -- set Logical_Switch public other_config:requested-tnl-key=401"
    yield "lsp-add public ln-public -- lsp-set-type ln-public localnet -- lsp-set-addresses ln-public unknown"
    yield "lsp-set-options ln-public network_name=public requested-tnl-key=1"
    yield "lrp-add lr0 lr0-public 00:00:02:00:00:01 172.16.0.1/24"
    yield "set Logical_Router_Port lr0-public options:requested-tnl-key=51"
    yield "lsp-add public public-lr0 -- lsp-set-type public-lr0 router -- lsp-set-addresses public-lr0 router"
    yield "lsp-set-options public-lr0 router-port=lr0-public requested-tnl-key=2 nat-addresses=router"
    yield "lrp-set-gateway-chassis lr0-public hv1 20 -- lrp-set-gateway-chassis lr0-public hv2 10"
    yield "set Logical_Router lr1 options:chassis=hv1"


def groups():
    for g in range(4):
        members = " ".join(f"vm{s}-{g}" for s in range(SWITCHES))
        yield f"pg-add pg{g} {members}"
        yield f"create Address_Set name=as{g} addresses=" + ",".join(f"10.{s}.0.{g + 10}" for s in range(SWITCHES))
        yield f"--type=port-group acl-add pg{g} to-lport {1000 + g} 'outport == @pg{g} && ip4.src == $as{g}' allow-related"
        yield f"--type=port-group acl-add pg{g} to-lport 900 'outport == @pg{g} && ip4' drop"
    yield "meter-add acl-meter drop 100 pktps 10"


def rules(s):
    yield f"acl-add ls{s} from-lport 1001 'inport == \"vm{s}-0\" && tcp.dst == {{80, 443}}' allow-related"
    yield f"--log --severity=warning --name=no-dns-{s} --meter=acl-meter acl-add ls{s} from-lport 950 'udp.dst == 53' reject"
    yield f"acl-add ls{s} to-lport 800 'ip4.src == 10.{(s + 1) % SWITCHES}.0.0/24' drop"
    yield f"qos-add ls{s} from-lport 100 'inport == \"vm{s}-1\"' rate=1000 burst=100 dscp=10"


def balancers():
    for b in range(6):
        backends = ",".join(f"10.{b}.0.{p + 10}:8080" for p in range(4))
        yield f"lb-add lb{b} 192.168.{b}.1:80 {backends} " + ("udp" if b % 3 == 2 else "tcp")
        yield f"lb-add lb{b} 192.168.{b}.2:443 {backends} " + ("udp" if b % 3 == 2 else "tcp")
        yield f"ls-lb-add ls{b} lb{b} -- ls-lb-add ls{(b + 1) % SWITCHES} lb{b} -- lr-lb-add lr{b % ROUTERS} lb{b}"
    yield "set Load_Balancer lb0 options:hairpin_snat_ip=192.168.0.9 options:affinity_timeout=60"
    yield "lb-add lb6 [fd00::100]:80 [fd00:1::a]:8080 -- ls-lb-add ls1 lb6"


def translations():
    yield "lr-nat-add lr0 snat 172.16.0.10 10.0.0.0/24"
    for p in range(4):
        yield f"lr-nat-add lr0 dnat_and_snat 172.16.0.{20 + p} 10.0.0.{p + 10} vm0-{p} 00:00:03:00:00:0{p}"
    yield "lr-nat-add lr0 dnat 172.16.0.30 10.0.0.15"
    yield "lr-nat-add lr1 snat 100.64.0.2 10.1.0.0/24 -- lr-nat-add lr1 dnat_and_snat 100.64.0.50 10.1.0.11"


def routes():
    for r in range(1, ROUTERS):
        yield f"lr-route-add lr{r} 0.0.0.0/0 100.64.0.1"
        for s in range(r, SWITCHES, ROUTERS):
            yield f"lr-route-add lr0 10.{s}.0.0/24 100.64.0.{r + 1}"
    yield "lr-route-add lr0 0.0.0.0/0 172.16.0.254 lr0-public"
    yield "--ecmp lr-route-add lr0 192.0.2.0/24 100.64.0.2 -- --ecmp lr-route-add lr0 192.0.2.0/24 100.64.0.3"
    yield "lr-policy-add lr0 100 'ip4.src == 10.0.0.0/24' reroute 172.16.0.253"
    yield "lr-policy-add lr0 90 'ip4.dst == 10.9.0.0/24' drop"


def extras():
    yield "--id=@dns create DNS records:web.example=10.0.0.10 records:db.example=10.1.0.11 -- add Logical_Switch ls0 dns_records @dns"
    yield "set Logical_Switch ls2 other_config:mcast_snoop=true other_config:mcast_querier=false"
    yield "lsp-add ls4 child0 vm4-1 30 -- lsp-set-addresses child0 '00:00:00:04:02:01 10.4.0.200' -- set Logical_Switch_Port child0 options:requested-tnl-key=80"
    yield "lsp-add ls4 virt0 -- lsp-set-type virt0 virtual -- set Logical_Switch_Port virt0 options:requested-tnl-key=81 options:virtual-ip=10.4.0.201 options:virtual-parents=vm4-2,vm4-3"
    yield "copp-add copp0 arp acl-meter -- ls-copp-add copp0 ls5"
    yield "set Logical_Router_Port lr2-ls2 ipv6_ra_configs:address_mode=slaac ipv6_ra_configs:send_periodic=true ipv6_ra_configs:mtu=1400"


def changes():
    """What happens after the first translation, a transaction each: additions, changes and removals."""
    yield ["lsp-del vm3-3 -- lsp-del vm3-4", "acl-del ls3 to-lport 800 'ip4.src == 10.4.0.0/24'"]
    yield ["lsp-add ls3 late0 -- lsp-set-addresses late0 '00:00:00:03:03:01 10.3.0.150' -- set Logical_Switch_Port late0 options:requested-tnl-key=70"]
    yield ["pg-set-ports pg1 vm0-1 vm5-1", "remove Address_Set as1 addresses 10.3.0.11"]
    yield ["lb-del lb2 -- lb-add lb5 192.168.5.1:8080 10.5.0.10:80"]
    yield ["lr-nat-del lr0 dnat 172.16.0.30", "lr-route-del lr0 192.0.2.0/24 100.64.0.3"]
    yield ["ls-del ls11 -- lrp-del lr3-ls11"]
    yield ["lsp-set-addresses vm2-2 '00:00:00:02:01:77 10.2.0.177' -- lsp-set-enabled vm2-5 enabled"]
