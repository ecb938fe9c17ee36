"""What is planted where: families, placement, pools, the draw and its commitment."""
