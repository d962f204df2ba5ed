"""The metrics of the cluster manager, beside those all services share."""

from prometheus_client import Counter, Gauge

ACTIVE = Gauge("sluice_cluster_manager_active", "1 while this instance decides for the cluster, 0 on standby")
HOSTS = Gauge("sluice_segment_stores", "Live segment stores as the active instance last read them, 0 on standby")
ZOOKEEPER_LOSSES = Counter("sluice_zookeeper_connection_losses", "Times the connection to ZooKeeper was lost")
ASSIGNMENTS = Counter("sluice_container_assignments", "Assignments that gave containers to another segment store")
UNASSIGNED = Gauge("sluice_containers_unassigned", "Containers that the map gives to no segment store")
MEMBERS = Gauge("sluice_members", "Instances of our own services that are alive, by service", ["name"])
